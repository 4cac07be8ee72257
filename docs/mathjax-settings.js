window.MathJax = {
  tex: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]], processEscapes: true, processEnvironments: true },
  options: { ignoreHtmlClass: ".*|", processHtmlClass: "arithmatex" },
};
if (document.querySelector(".arithmatex")) { // two megabytes, which most pages do not need
  const script = document.createElement("script");
  script.src = new URL("javascripts/mathjax.js", document.currentScript.src);
  document.head.append(script);
}
