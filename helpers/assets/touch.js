// Figures that a reader can touch (helpers/views.py). The page has them drawn; this adds what moves.
(function (root) {
  if (!root || root.dataset.drawn) return;
  root.dataset.drawn = "yes";
  const number = document.querySelectorAll(".touch[data-drawn]").length;
  const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const plot = root.querySelector(".plot"), svg = plot && plot.querySelector("svg");
  const svgNS = "http://www.w3.org/2000/svg";
  const filled = (element, attributes, text) => {
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const make = (name, attributes, text) => filled(document.createElement(name), attributes, text);
  const drawn = (name, attributes, text) => filled(document.createElementNS(svgNS, name), attributes, text);
  const place = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());

  function points() {
    const circles = [...svg.querySelectorAll(".point")];
    const at = circles.map((c) => [+c.getAttribute("cx"), +c.getAttribute("cy")]);
    const legend = plot.querySelector(".legend"), ring = drawn("circle", { class: "ring", r: 8 });
    const panel = make("div", { class: "panel" }), says = make("p", { class: "says", "aria-live": "polite" });
    let shown = data.first, kept = null, colouring = 0;
    const maps = data.maps && Uint8Array.from(atob(data.maps), (c) => c.charCodeAt(0));
    const map = maps && mapOf(data.size, data.tokens);

    function show(n) {
      circles[shown].setAttribute("tabindex", -1);
      shown = n;
      circles[n].setAttribute("tabindex", 0);
      filled(ring, { cx: at[n][0], cy: at[n][1], class: kept === null ? "ring" : "ring kept" });
      circles.forEach((circle, i) => circle.setAttribute("aria-pressed", i === kept));
      const [title, labels, palette] = data.colourings[colouring];
      says.textContent = "";
      says.append(make("strong", {}, data.names[n]), `  ${title}: ${palette[labels[n]][0]}. ${data.texts[n] || ""} `);
      if (map) map.show(maps.subarray(n * data.size ** 2, (n + 1) * data.size ** 2), data.names[n]);
    }
    function keep(n) {
      kept = kept === n ? null : n;
      show(n);
    }
    function paint(which) {
      colouring = which;
      const [, labels, palette] = data.colourings[which];
      circles.forEach((circle, n) => circle.setAttribute("fill", palette[labels[n]][1]));
      legend.textContent = "";
      for (const [label, colour] of palette) {
        const entry = make("li", {});
        entry.append(make("i", { style: `background:${colour}` }), label);
        legend.append(entry);
      }
      show(shown);
    }
    function nearest(event) {
      const own = circles.indexOf(event.target), spot = place(event);
      if (own >= 0) return own;
      const far = at.map(([x, y]) => Math.hypot(x - spot.x, y - spot.y));
      const least = Math.min(...far);
      return least < 24 ? far.indexOf(least) : -1;
    }
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    function neighbour([dx, dy]) {
      let best = shown, least = Infinity;
      at.forEach(([x, y], n) => {
        const along = (x - at[shown][0]) * dx + (y - at[shown][1]) * dy;
        const aside = Math.abs((x - at[shown][0]) * dy) + Math.abs((y - at[shown][1]) * dx);
        if (along > 0.01 && along + 2 * aside < least) [best, least] = [n, along + 2 * aside];
      });
      return best;
    }
    function key(event) {
      const turn = { PageDown: 1, PageUp: circles.length - 1 }[event.key];
      let to = null;
      if (steps[event.key]) to = neighbour(steps[event.key]);
      else if (turn) to = (shown + turn) % circles.length;
      else if (event.key === "Home") to = 0;
      else if (event.key === "End") to = circles.length - 1;
      if (to !== null) {
        kept = null;
        show(to);
        circles[to].focus();
      } else if (event.key === "Enter" || event.key === " ") keep(shown);
      else if (event.key === "Escape") {
        kept = null;
        show(shown);
      } else return;
      event.preventDefault();
    }
    svg.setAttribute("role", "group");
    plot.classList.add("chosen");
    circles.forEach((circle, n) => {
      circle.textContent = "";
      filled(circle, { role: "button", tabindex: -1, "aria-label": data.names[n] });
      circle.addEventListener("focus", () => { if (kept === null) show(n); });
    });
    svg.addEventListener("keydown", key);
    svg.addEventListener("pointermove", (event) => {
      const n = nearest(event);
      if (kept === null && n >= 0 && n !== shown) show(n);
    });
    svg.addEventListener("click", (event) => {
      const n = nearest(event);
      if (n >= 0) {
        keep(n);
        circles[n].focus({ preventScroll: true });
      }
    });
    svg.append(ring);
    panel.append(says);
    if (map) panel.append(map.svg);
    const titles = data.colourings.map(([title]) => title);
    if (titles.length > 1) {
      const bar = make("div", { class: "bar", role: "radiogroup", "aria-label": "Colour by" });
      bar.append("Colour by");
      titles.forEach((title, n) => {
        const label = make("label", {}), input = make("input", { type: "radio", name: `touch-${number}` });
        input.checked = n === 0;
        input.addEventListener("change", () => paint(n));
        label.append(input, title);
        bar.append(label);
      });
      root.prepend(bar);
    }
    root.append(panel, make("p", { class: "help" },
      "Point at a dot or touch it; a click or Enter keeps it. The arrow keys go to its neighbours, Page Up and Page Down through all."));
    paint(0);
  }

  // A map of weights: rows attend, columns are attended to; darker is more.
  function mapOf(size, tokens) {
    const cut = (token) => (token.length > 9 ? `${token.slice(0, 8)}…` : token);
    const margin = tokens.length ? 50 : 4, step = (250 - margin) / size;
    const found = drawn("svg", { class: "map", viewBox: "0 0 254 254", role: "img" });
    const cells = [];
    for (let q = 0; q < size; q++) for (let k = 0; k < size; k++) {
      const where = { x: margin + k * step, y: margin + q * step, width: step + 0.2, height: step + 0.2 };
      found.append(cells[cells.push(drawn("rect", where)) - 1]);
    }
    const high = Math.min(9, step - 1);
    tokens.forEach((token, i) => {
      const middle = margin + (i + 0.5) * step, style = `font-size:${high}px`;
      found.append(drawn("text", { x: margin - 4, y: middle + high / 3, "text-anchor": "end", style }, cut(token)));
      const up = `translate(${middle + high / 3},${margin - 4}) rotate(-90)`;
      found.append(drawn("text", { transform: up, style }, cut(token)));
    });
    found.append(drawn("rect", { x: margin, y: margin, width: step * size, height: step * size, fill: "none", stroke: "#999" }));
    // the shades of the book's other maps, from 0 to 1
    const shades = [[247, 251, 255], [198, 219, 239], [107, 174, 214], [33, 113, 181], [8, 48, 107]];
    const mixed = (weight) => {
      const below = Math.min(3, Math.floor(4 * weight)), rest = 4 * weight - below;
      return shades[below].map((low, channel) => Math.round(low + (shades[below + 1][channel] - low) * rest));
    };
    return {
      svg: found,
      show: (weights, name) => {
        weights.forEach((weight, n) => cells[n].setAttribute("fill", `rgb(${mixed(weight / 255)})`));
        found.setAttribute("aria-label", `Attention map of ${name}; rows attend, columns are attended to`);
      },
    };
  }

  points();
})(document.currentScript ? document.currentScript.parentElement : document.querySelector(".touch:not([data-drawn])"));
