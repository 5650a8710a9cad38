// Links that save tables and figures, names and roles that screen readers need, and bertviz's frames, loaded when a reader comes near.
document.addEventListener("DOMContentLoaded", () => {
  const page = location.pathname.split("/").pop().replace(".html", "");

  function addLink(element, href, name) {
    const kind = name.split(".").pop().toUpperCase();
    const link = Object.assign(document.createElement("a"), { href, download: name, textContent: kind });
    link.setAttribute("aria-label", `${kind}: save ${name}`);
    const line = Object.assign(document.createElement("p"), { className: "save" });
    line.append(link);
    element.after(line);
  }

  const inSight = new Set();
  const beside = new IntersectionObserver( // what stands beside a wide table folds, as the theme has it beside notes in the margin
    (entries) => {
      for (const entry of entries) inSight[entry.isIntersecting ? "add" : "delete"](entry.target);
      document.body.classList.toggle("wide-in-sight", inSight.size > 0);
    },
    { rootMargin: "0px 0px -33% 0px" },
  );

  const cell = (td) => `"${td.textContent.trim().replace(/\s+/g, " ").replaceAll('"', '""')}"`;
  document.querySelectorAll(".bd-article table:not(.live table)").forEach((table, n) => {
    const csv = [...table.rows].map((row) => [...row.cells].map(cell).join(",")).join("\n");
    const [head] = table.rows;
    if (matchMedia("(max-width: 600px)").matches && head.lastElementChild.textContent.trim() === "controls") {
      table.querySelectorAll("td:last-child").forEach((td) => {
        const folded = Object.assign(document.createElement("details"), { innerHTML: "<summary>show</summary>" });
        folded.append(...td.childNodes);
        td.append(folded);
      });
    }
    const box = table.closest(".pst-scrollable-table-container") ?? table;
    const fade = () => box.classList.toggle("scrolls", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    const fit = () => { // as wide as the text; one that needs more takes what is free at its right
      box.style.width = "";
      const free = document.documentElement.clientWidth - box.getBoundingClientRect().left - 32;
      if (box.scrollWidth > box.clientWidth && free > box.clientWidth) {
        box.style.width = `${Math.min(box.scrollWidth, free)}px`;
        box.classList.add("wide");
        beside.observe(box);
      }
      fade();
    };
    fit();
    new ResizeObserver(fit).observe(box.parentElement); // also when a folded part is opened
    box.addEventListener("scroll", fade);
    if (table.closest(".cell_output, .scoreboard")) addLink(box, `data:text/csv;charset=utf-8,${encodeURIComponent(csv)}`, `${page}-table-${n + 1}.csv`);
  });
  document.querySelectorAll(".bd-article figure").forEach((figure, n) => {
    const image = figure.querySelector("img");
    const kind = image?.src.match(/\.(png|svg)$/);
    if (image?.matches(".wide") && matchMedia("(max-width: 600px)").matches) figure.tabIndex = 0; // it scrolls there
    if (kind) addLink(figure, image.src, `${figure.id || `${page}-figure-${n + 1}`}${kind[0]}`);
  });

  // what the pages say comes before what the package is called
  if (window.Scorer) Scorer.score = ([page, , , , score]) => score - 100 * page.startsWith("book/helpers");

  let folded = [];
  addEventListener("beforeprint", () => { // the code of figures stays where it is
    folded = [...document.querySelectorAll(".bd-article details:not([open], .above-input)")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });

  document.querySelectorAll("details.hide > summary").forEach((fold) => fold.removeAttribute("aria-label")); // it has words of its own
  document.querySelectorAll("nav li > details > summary").forEach((toggle) => {
    toggle.ariaLabel = `Pages below: ${toggle.closest("li").querySelector("a").textContent.trim()}`;
  });

  document.querySelectorAll(".citation-list").forEach((list) => list.removeAttribute("role")); // its entries are not list items

  const frames = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((one) => one.isIntersecting)) {
        frames.unobserve(entry.target);
        entry.target.src = entry.target.dataset.src;
      }
    },
    { rootMargin: "500px" },
  );
  document.querySelectorAll("iframe[data-src]").forEach((frame) => frames.observe(frame));
});
