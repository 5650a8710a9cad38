// Interactive view of attention: lines from each token (left) to the tokens it attends to (right).
// One byte a weight. Choose a layer, switch heads on and off, point at or tab to a token to see its row alone.
(function (root) {
  if (!root || root.dataset.drawn) return;
  root.dataset.drawn = "yes";
  const view = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const weights = Uint8Array.from(atob(view.weights), (c) => c.charCodeAt(0));
  const n = view.tokens.length, heads = view.heads, layers = view.layers;
  const weight = (l, h, q, k) => weights[((l * heads + h) * n + q) * n + k] / 255;
  const colours = view.colours;
  const STEP = 19, TOP = 12, LEFT = 118, RIGHT = 262, WIDTH = 380;
  const svgNS = "http://www.w3.org/2000/svg";
  const make = (name, attributes, text) => {
    const element = document.createElementNS(svgNS, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const state = { layer: 0, on: new Set(Array(heads).keys()), token: null };

  const controls = document.createElement("div");
  controls.style.cssText = "display:flex;flex-wrap:wrap;gap:4px;align-items:center;margin-bottom:6px;font-size:14px";
  const label = document.createElement("label");
  label.textContent = "Layer ";
  const select = document.createElement("select");
  for (let l = 0; l < layers; l++) select.add(new Option(l + 1, l, l === state.layer, l === state.layer));
  select.addEventListener("change", () => { state.layer = +select.value; draw(); });
  label.append(select);
  controls.append(label, document.createTextNode(" Heads "));
  const buttons = [];
  const button = (text, title, press) => {
    const b = document.createElement("button");
    b.type = "button"; b.textContent = text; b.title = title;
    b.style.cssText = "min-width:26px;padding:1px 4px;border:1px solid #888;border-radius:3px;cursor:pointer";
    b.addEventListener("click", press);
    controls.append(b);
    return b;
  };
  for (let h = 0; h < heads; h++) {
    buttons.push(button(h + 1, "Head " + (h + 1), () => {
      state.on.has(h) ? state.on.delete(h) : state.on.add(h);
      draw();
    }));
  }
  button("all", "Show all heads", () => { for (let h = 0; h < heads; h++) state.on.add(h); draw(); });
  button("none", "Hide all heads", () => { state.on.clear(); draw(); });

  const svg = make("svg", {
    viewBox: `0 0 ${WIDTH} ${TOP + n * STEP + 6}`, role: "img", "aria-label": view.label,
    style: `width:100%;max-width:${WIDTH * 1.25}px;font:12px sans-serif;display:block`,
  });
  const lines = make("g", {});
  svg.append(lines);
  const y = (i) => TOP + i * STEP + 4;
  view.tokens.forEach((token, i) => {
    const left = make("text", { x: LEFT - 6, y: y(i) + 4, "text-anchor": "end", fill: "currentColor", tabindex: 0, style: "cursor:pointer" }, token);
    const show = () => { state.token = i; draw(); };
    const hide = () => { state.token = null; draw(); };
    for (const event of ["mouseenter", "focus"]) left.addEventListener(event, show);
    for (const event of ["mouseleave", "blur"]) left.addEventListener(event, hide);
    svg.append(left, make("text", { x: RIGHT + 6, y: y(i) + 4, fill: "currentColor" }, token));
  });
  const status = document.createElement("p");
  status.setAttribute("aria-live", "polite");
  status.style.cssText = "font-size:13px;min-height:2.6em;margin:4px 0 0";

  function draw() {
    lines.textContent = "";
    buttons.forEach((b, h) => {
      const on = state.on.has(h);
      b.setAttribute("aria-pressed", on);
      b.style.background = on ? colours[h % colours.length] : "transparent";
      b.style.color = on ? "#fff" : "inherit";
    });
    for (const h of state.on) for (let q = 0; q < n; q++) {
      if (state.token !== null && q !== state.token) continue;
      for (let k = 0; k < n; k++) {
        const w = weight(state.layer, h, q, k);
        if (w < 0.02) continue;
        lines.append(make("line", {
          x1: LEFT, y1: y(q), x2: RIGHT, y2: y(k), stroke: colours[h % colours.length],
          "stroke-width": state.on.size > 3 ? 1.5 : 2.5, "stroke-opacity": w,
        }));
      }
    }
    status.textContent = summary();
  }
  function summary() {
    if (state.token === null) return "Point at a token on the left, or reach it with the Tab key, to see where it attends.";
    const sums = view.tokens.map((_, k) => {
      let s = 0;
      for (const h of state.on) s += weight(state.layer, h, state.token, k);
      return [s / Math.max(1, state.on.size), k];
    }).sort((a, b) => b[0] - a[0]).slice(0, 4);
    const list = sums.map(([s, k]) => `${view.tokens[k]} ${(100 * s).toFixed(0)} %`).join(", ");
    return `“${view.tokens[state.token]}” attends to ${list} (mean of the heads shown).`;
  }
  root.append(controls, svg, status);
  draw();
})(document.currentScript ? document.currentScript.parentElement : document.querySelector(".attention-view:not([data-drawn])"));
