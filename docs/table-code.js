for (const code of document.querySelectorAll("td code, th code")) { // where a line may break in a narrow table
  code.innerHTML = code.innerHTML.replace(/[_(=,.:@](?=[^<\s])/g, "$&<wbr>");
}
