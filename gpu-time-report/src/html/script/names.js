// ---- Short names in the call tree and in the legends of the devices. They hide the module, because
// there is only room for the function, unless only the module tells it from another function.

const segments = (name) => {
  const [, module, last] = /^((?:\w+::)*)(.*)$/s.exec(name);
  return [...(module.match(/\w+::/g) ?? []), last];
};
const shorten = (nodes) => {
  const endings = new Map();
  for (const name of new Set(nodes.map((node) => node.textContent))) {
    const parts = segments(name);
    parts.forEach((_, i) => {
      const end = parts.slice(i).join("");
      endings.set(end, (endings.get(end) ?? 0) + 1);
    });
  }
  for (const node of nodes) {
    node.title = node.textContent;
    const name = segments(node.textContent);
    let from = name.length - 1;
    // A method follows its type.
    if (from > 0 && /^[A-Z]/.test(name[from - 1])) from--;
    while (from > 0 && endings.get(name.slice(from).join("")) > 1) from--;
    const [module, rest] = [name.slice(0, from), name.slice(from)].map((part) => part.join(""));
    if (module) node.replaceChildren(el("span", { class: "module" }, module), rest);
  }
};
