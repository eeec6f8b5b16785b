// ---- The interactive parts that this page contains.

const table = document.querySelector(".rows");
if (table) showTable(table);
const tree = document.querySelector(".tree");
if (tree) showTree(tree);
shorten(all(".tree tbody th, .legend .name"));

// ---- Warnings. They are folded where they would push the table off the screen.

const warnings = document.querySelector(".warnings:not(.off)");
const isSmall = matchMedia("(max-width: 760px), (max-height: 720px)").matches;
if (warnings && (isSmall || warnings.querySelectorAll("li").length > 3)) warnings.open = false;

// ---- Light and dark theme.

const theme = document.querySelector(".theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
theme.hidden = false;
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const now = root.dataset.theme ?? (prefersDark.matches ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
});

document.body.classList.add("scripted");
