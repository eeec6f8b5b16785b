// ---- The call tree as an icicle.

const showTree = (tree) => {
  const box = tree.parentElement;
  const rows = all("tbody tr", tree);
  const number = (row, name) => Number(row.style.getPropertyValue(name));
  const depth = (row) => number(row, "--d");
  const parents = [];
  const parent = new Map(rows.map((row) => {
    parents.length = depth(row);
    const above = parents.at(-1);
    parents.push(row);
    return [row, above];
  }));
  const path = (row) => (row ? [...path(parent.get(row)), row.cells[0].textContent] : []);
  const ending = (names, most = 3) => [...(names.length > most ? ["…"] : []), ...names.slice(-most)];
  // Returns the figure in a cell, with the unit from the header and then the error.
  const cell = (row, i) => {
    const unit = tree.tHead.rows[0].cells[i].querySelector("small")?.textContent;
    const [figure, ...error] = row.cells[i].textContent.split(" ±");
    return [unit && figure ? `${figure} ${unit}` : figure, ...error].join(" ±");
  };
  const describe = (row) => {
    const [, share, own, total, calls, busy, host, remarks] = [...row.cells].map((_, i) => cell(row, i));
    return [
      `${ending(path(row)).join(" › ")}: ${total} in total, ${own} its own${share && ` (${share})`}`,
      calls && counted(calls, "call"), busy && `GPU ${busy} per call`, host && `host ${host}`, remarks,
    ].filter(Boolean).join(" · ");
  };
  const [waits, bound] = [".waits", ".bound"].map((mark) => tree.querySelector(mark));
  const hint = () => [
    "width: GPU time · click to enlarge",
    waits && [" · ", el("u", {}, "underlined"), ": waits for the CPU"],
    bound && [" · ", el("i"), "hatched: upper bounds"],
  ];
  const said = el("output", {});
  const flip = el("button", { type: "button", class: "flip" }, "as a table");
  // The longest path of the function to look at first.
  const first = all(".first", tree).sort((a, b) => number(b, "--w") - number(a, "--w"))[0];
  const colour = first && [...first.classList].find((name) => /^c\d$/.test(name));
  const key = first && el("button", { type: "button", class: ["key", colour].filter(Boolean).join(" ") }, "look here");
  let current;
  const say = (row = current) => {
    said.replaceChildren();
    said.classList.toggle("said", !!row);
    fill(said, {}, [row ? describe(row) : hint()]);
    said.title = said.textContent;
  };
  const zoom = (row) => {
    current = row === current ? undefined : row;
    rows.forEach((each) => each.toggleAttribute("data-at", each === current));
    tree.style.setProperty("--from", current ? number(current, "--x") : 0);
    tree.style.setProperty("--scale", current ? 1 / Math.max(1e-5, number(current, "--w")) : 1);
    say();
  };
  const rowOf = (event) => event.target.closest("tbody tr");
  const isIcicle = () => box.classList.contains("icicle");
  const flipped = () => {
    const now = box.classList.toggle("icicle");
    flip.textContent = now ? "as a table" : "as an icicle";
    rows.forEach((row, i) => (now ? row.setAttribute("tabindex", i ? -1 : 0) : row.removeAttribute("tabindex")));
  };
  const beside = (row, by) => {
    const level = rows.filter((other) => parent.get(other) === parent.get(row));
    return level[level.indexOf(row) + by];
  };
  tree.addEventListener("click", (event) => isIcicle() && rowOf(event) && zoom(rowOf(event)));
  tree.addEventListener("pointerover", (event) => rowOf(event) && say(rowOf(event)));
  tree.addEventListener("pointerleave", () => say());
  tree.addEventListener("focusin", (event) => rowOf(event) && say(rowOf(event)));
  tree.addEventListener("keydown", (event) => {
    const row = rowOf(event);
    if (!row || !isIcicle()) return;
    if (event.key === "Escape" && current) return zoom(current);
    if (event.key === "Enter" || event.key === " ") zoom(row);
    const next = {
      ArrowUp: () => parent.get(row),
      ArrowDown: () => rows.find((other) => parent.get(other) === row),
      ArrowLeft: () => beside(row, -1),
      ArrowRight: () => beside(row, 1),
    }[event.key]?.();
    if (next) {
      row.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
    if (event.key.startsWith("Arrow") || event.key === " ") event.preventDefault();
  });
  // Deep paths are below the edge of the box.
  const reveal = (row) => {
    box.scrollTop = Math.max(0, row.offsetTop + row.offsetHeight + 8 - box.clientHeight);
  };
  key?.addEventListener("click", () => {
    zoom(first);
    reveal(first);
  });
  key?.addEventListener("pointerover", () => say(first));
  key?.addEventListener("pointerleave", () => say());
  flip.addEventListener("click", flipped);
  flipped();
  say();
  box.previousElementSibling.append(...[key, said, flip].filter(Boolean));
  if (first) reveal(first);
};
