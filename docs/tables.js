for (const cell of document.querySelectorAll("article :is(td, th)")) {
  cell.classList.toggle("long", cell.textContent.length > 15); // not one word wide on a phone
  for (const code of cell.querySelectorAll("code"))
    code.innerHTML = code.innerHTML.replace(/[_(=,](?=[^<\s])|\.(?=[a-z])/gi, "$&<wbr>"); // where its line may break
}
