// The atlas of heads (helpers/run/atlas.py): all heads of a model as small maps, a card for each, two side by side.
// Also the card that opens under a figure whose points are heads. Data come as scripts, so that pages open from disk.
(function () {
  if (window.Atlas) return;
  const svgNS = "http://www.w3.org/2000/svg", NBSP = "\u00a0";
  const fill = (element, attributes, parts) => {
    for (const key in attributes) if (attributes[key] !== null) element.setAttribute(key, attributes[key]);
    element.append(...parts.filter((part) => part !== null && part !== undefined));
    return element;
  };
  const make = (name, attributes = {}, ...parts) => fill(document.createElement(name), attributes, parts);
  const drawn = (name, attributes = {}, ...parts) => fill(document.createElementNS(svgNS, name), attributes, parts);
  const button = (text, press, attributes = {}) => {
    const found = make("button", { type: "button", ...attributes }, text);
    found.addEventListener("click", press);
    return found;
  };
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const TEXTS = { book: "the book's texts", full: "real corpora" };

  // ------------------------------------------------------------------ models

  const waiting = {};
  function load(model, folder, files) {
    const ready = () => (window.atlasModels || {})[model];
    if (ready()) return Promise.resolve(prepared(ready()));
    waiting[model] ||= new Promise((resolve, reject) => {
      const script = make("script", { src: folder + encodeURIComponent(files[model]) });
      script.addEventListener("load", () => (ready() ? resolve(prepared(ready())) : reject(new Error(model))));
      script.addEventListener("error", () => reject(new Error(model)));
      document.head.append(script);
    });
    return waiting[model];
  }
  function prepared(data) {
    if (data.count) return data;
    data.count = data.layers * data.heads;
    data.mapBytes = bytes(data.maps);
    for (const example of Object.values(data.examples)) example.bytes = bytes(example.weights);
    for (const grid of data.grids) {
      grid.key = `${grid.quantity} ${grid.of || ""}`;
      grid.texts = data.sources[grid.source].profile === "full" ? "full" : "book";
    }
    return data;
  }
  const nameOf = (data, head) => `${Math.floor(head / data.heads) + 1}-${(head % data.heads) + 1}`;
  const headOf = (data, name) => {
    const [layer, head] = name.split("-").map(Number);
    return layer >= 1 && layer <= data.layers && head >= 1 && head <= data.heads ? (layer - 1) * data.heads + head - 1 : -1;
  };
  const typeOf = (data, head) => data.types.names[data.types.of[head]];
  const address = (model, name) => `${encodeURIComponent(model)}/${name}`;

  // ------------------------------------------------------------------ numbers and colours

  const signed = (text) => text.replace("-", "−");
  function bare(value, grid) {
    const share = grid.unit === "share";
    if (grid.as === "percent" || (share && grid.as === "signed")) return signed((100 * value).toFixed(1));
    return signed(Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(3));
  }
  function unitOf(grid) {
    if (grid.as === "percent") return `${NBSP}%`;
    if (grid.as === "signed" && grid.unit === "share") return `${NBSP}points`;
    return { nats: `${NBSP}nats`, F1: `${NBSP}of F1`, "even attention": `${NBSP}× even attention` }[grid.unit] || "";
  }
  function told(grid, head) {
    const interval = grid.low ? ` [${bare(grid.low[head], grid)}, ${bare(grid.high[head], grid)}]` : "";
    const label = grid.labels ? `${grid.labels[head]} ` : "";
    return `${label}${bare(grid.value[head], grid)}${unitOf(grid)}${interval}`;
  }
  const against = (grid, head) => (Array.isArray(grid.control) ? grid.control[head] : grid.control);
  const stands = (grid, head) => `${grid.against}: ${bare(against(grid, head), grid)}${unitOf(grid)}`;
  const BLUES = [[247, 251, 255], [198, 219, 239], [107, 174, 214], [33, 113, 181], [8, 48, 107]];
  const ORANGES = [[247, 251, 255], [254, 217, 142], [254, 153, 41], [213, 94, 0], [127, 56, 0]];
  function mixed(shades, part) {
    const place = 4 * Math.min(1, Math.max(0, part)), below = Math.min(3, Math.floor(place)), rest = place - below;
    return `rgb(${shades[below].map((low, i) => Math.round(low + (shades[below + 1][i] - low) * rest))})`;
  }
  function scaleOf(grid) {
    const least = Math.min(...grid.value), most = Math.max(...grid.value);
    if (grid.as !== "signed") {
      const from = grid.as === "percent" ? 0 : least, span = most - from || 1;
      return { of: (v) => mixed(BLUES, (v - from) / span), ends: [from, most], dark: (v) => (v - from) / span > 0.5 };
    }
    const far = Math.max(Math.abs(least), Math.abs(most)) || 1;
    const of = (v) => mixed(v < 0 ? BLUES : ORANGES, Math.abs(v) / far);
    return { of, ends: [-far, far], dark: (v) => Math.abs(v) / far > 0.6 };
  }

  // ------------------------------------------------------------------ pictures

  function mapOf(data, head, attributes = {}) {
    const size = data.size, canvas = make("canvas", { width: size, height: size, ...attributes });
    const context = canvas.getContext("2d"), image = context.createImageData(size, size);
    for (let i = 0; i < size * size; i++) {
      const shade = 255 - Math.round(235 * Math.sqrt(data.mapBytes[head * size * size + i] / 255));
      image.data.set([shade, shade, shade, 255], 4 * i);
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }
  function meanMap(data, head) {
    const name = nameOf(data, head), most = (100 * data.scale[Math.floor(head / data.heads)][head % data.heads]).toFixed(0);
    const label = `Mean attention map of head ${name}: rows attend, columns are attended to`;
    return make("figure", { class: "mean" },
      make("div", { class: "framed" }, mapOf(data, head, { role: "img", "aria-label": label })),
      make("div", { class: "under" }, make("span", {}, "[CLS]"), make("span", {}, "words"), make("span", {}, "[SEP]")),
      make("figcaption", {}, `Mean map of ${data.sentences} sentences, the words brought to ${data.size - 2} places; darkest ${most}${NBSP}%`));
  }
  function profileOf(data, head) {
    const { offsets, value } = data.profile, own = value[Math.floor(head / data.heads)][head % data.heads];
    const most = Math.max(...own, 0.01), W = 230, H = 110, step = W / offsets.length;
    const label = `By distance: ${offsets.map((o, i) => `${signed(String(o))}: ${(100 * own[i]).toFixed(1)} %`).join(", ")}`;
    const svg = drawn("svg", { viewBox: `0 0 ${W} ${H + 16}`, role: "img", "aria-label": label });
    offsets.forEach((offset, i) => {
      const high = (H - 12) * own[i] / most;
      const bar = drawn("rect", { x: i * step + 1, y: H - high, width: step - 2, height: high, class: offset ? "bar" : "bar self" });
      bar.append(drawn("title", {}, `${signed(String(offset))}: ${(100 * own[i]).toFixed(1)} %`));
      svg.append(bar);
      if (offset % 4 === 0) svg.append(drawn("text", { x: (i + 0.5) * step, y: H + 12, "text-anchor": "middle" }, signed(String(offset))));
    });
    svg.append(drawn("path", { d: `M0,${H}H${W}`, class: "axis" }), drawn("text", { x: 0, y: 10 }, `${(100 * most).toFixed(0)}${NBSP}%`));
    return make("figure", { class: "profile" }, svg,
      make("figcaption", {}, "By distance: mean weight on the word so many tokens to the left (−) or right"));
  }
  function linesOf(data, head, example) {
    const tokens = example.tokens, n = tokens.length, STEP = 17, LEFT = 88, RIGHT = 172, WIDTH = 260;
    const weight = (q, k) => example.bytes[head * n * n + q * n + k] / 255;
    const label = tokens.map((token, q) => {
      const best = tokens.reduce((top, _, k) => (weight(q, k) > weight(q, top) ? k : top), 0);
      return `${token} → ${tokens[best]}`;
    }).join(", ");
    const svg = drawn("svg", { class: "lines", viewBox: `0 0 ${WIDTH} ${n * STEP + 6}`, role: "img", "aria-label": `Most attended: ${label}` });
    const y = (i) => i * STEP + 12, all = drawn("g");
    tokens.forEach((token, q) => {
      const row = drawn("g");
      tokens.forEach((_, k) => {
        const w = weight(q, k);
        if (w >= 0.03) row.append(drawn("path", { d: `M${LEFT},${y(q) - 4}L${RIGHT},${y(k) - 4}`, "stroke-opacity": w.toFixed(2) }));
      });
      const left = drawn("text", { x: LEFT - 5, y: y(q), "text-anchor": "end", class: "token" }, token);
      left.addEventListener("pointerenter", () => [...all.children].forEach((other) => other.classList.toggle("off", other !== row)));
      left.addEventListener("pointerleave", () => [...all.children].forEach((other) => other.classList.remove("off")));
      all.append(row);
      svg.append(left, drawn("text", { x: RIGHT + 5, y: y(q) }, token));
    });
    svg.prepend(all);
    return svg;
  }

  // ------------------------------------------------------------------ a card

  const byKey = (data, quantity, of, texts) => {
    const found = data.grids.filter((g) => g.quantity === quantity && (of === undefined || (g.of || "") === of));
    return found.find((g) => g.texts === texts) || found[0];
  };
  const from = (data, grid) => {
    const source = data.sources[grid.source];
    const counted = grid.n ? `, n${NBSP}=${NBSP}${grid.n.toLocaleString("en")}` : "";
    return `${source.profile === "atlas" ? "measured for the atlas" : `chapter ${source.chapter}`}, ${source.corpus || "its texts"}${source.split ? ` (${source.split})` : ""}${counted}`;
  };
  function listed(title, rows, none) {
    const section = make("section", {}, make("h4", {}, title));
    if (rows.length) section.append(make("ul", {}, ...rows.map((row) => make("li", {}, ...[row].flat()))));
    else section.append(make("p", { class: "none" }, none));
    return section;
  }
  const small = (text) => make("small", {}, text);
  const rowOf = (name, ...cells) => make("tr", {}, make("th", { scope: "row" }, name), ...cells.map((cell) => make("td", {}, ...[cell].flat())));
  function tabled(title, rows, none, columns = null) {
    const section = make("section", {}, make("h4", {}, title));
    const top = columns && make("thead", {}, make("tr", {}, ...columns.map((text) => make("th", { scope: "col" }, text))));
    section.append(rows.length ? make("table", {}, ...[top, make("tbody", {}, ...rows)].filter(Boolean)) : make("p", { class: "none" }, none));
    return section;
  }
  const GOVERNORS = ["finds_governor", "found_by_governor"];
  const PLACES = ["cls", "sep", "punctuation", "other", "previous", "self", "next"];
  function shares(data, head, texts) {
    const found = PLACES.map((place) => byKey(data, `share_${place}`, undefined, texts)).filter(Boolean);
    const rows = found.map((grid) => rowOf(grid.title.replace("attention to ", ""),
      make("span", { class: "bar", style: `--part:${grid.value[head]}` }), told(grid, head), grid.control === undefined ? "" : small(stands(grid, head))));
    const entropy = byKey(data, "entropy", undefined, texts);
    if (entropy) rows.push(rowOf("entropy", "", told(entropy, head), entropy.control === undefined ? "" : small(stands(entropy, head))));
    const section = tabled("Where it looks", rows, "Not recorded for this model.");
    if (found.length) section.append(make("p", { class: "from" }, from(data, found[0])));
    return section;
  }
  function ofTexts(data, found, texts) {
    const same = found.filter((one) => (data.sources[one.source].profile === "full" ? "full" : "book") === texts);
    return same.length ? same : found;
  }
  const SHARE = { as: "percent", unit: "share" };
  function specialities(data, head, texts) {
    const own = data.best.filter((one) => one.place === head), shown = ofTexts(data, own, texts);
    const rows = shown.map((one) => [
      make("strong", {}, one.title), ` ${bare(one.value, SHARE)}${NBSP}%`,
      one.low === undefined ? null : ` [${bare(one.low, SHARE)}, ${bare(one.high, SHARE)}]`,
      one.control === undefined ? null : `; ${one.against} ${bare(one.control, SHARE)}${NBSP}%`,
      one.low_lead === undefined ? null : `; lead ${bare(one.value_lead, SHARE)} [${bare(one.low_lead, SHARE)}, ${bare(one.high_lead, SHARE)}]`,
      small(` ${[one.label && one.label.includes(" to ") ? one.label : "", from(data, one)].filter(Boolean).join("; ")}`),
    ].filter(Boolean));
    const section = listed("What it was chosen for, on other documents", rows, "For no relation, kind of mention or place is it the head that was chosen.");
    if (shown.length < own.length) section.append(make("p", { class: "from" }, `${own.length - shown.length} more on ${TEXTS[texts === "full" ? "book" : "full"]}.`));
    const asked = data.grids.filter((g) => [...GOVERNORS, "finds_antecedent"].includes(g.quantity) && g.control !== undefined && g.n >= 30 && g.of !== "all");
    const sure = ofTexts(data, asked, texts), lead = (g) => g.value[head] - against(g, head);
    const ahead = sure.filter((g) => lead(g) > 0).sort((a, b) => lead(b) - lead(a)).slice(0, 5);
    section.append(make("h5", {}, "Where it is furthest ahead of the simple rule"));
    if (ahead.length) section.append(make("ul", {}, ...ahead.map((g) => make("li", {}, `${g.title} ${told(g, head)}`, small(` ${stands(g, head)}`)))),
      make("p", { class: "from" }, "The best of many on the same words, so flattering; without an interval."));
    else section.append(make("p", { class: "none" }, sure.length ? "Nowhere." : "Not recorded for this model."));
    return section;
  }
  function removal(data, head, texts) {
    const pairs = { removal_loss: "removal_cost", keyword_removal_loss: "keyword_removal_cost" };
    const found = ofTexts(data, data.grids.filter((g) => pairs[g.quantity]), texts);
    const rows = found.map((g) => {
      const score = data.grids.find((o) => o.quantity === pairs[g.quantity] && o.of === g.of && o.source === g.source);
      return rowOf(g.of ? g.title.split(": ").pop() : "key words", told(g, head), score ? told(score, head) : "", small(from(data, g)));
    });
    const more = "What its removal costs is not recorded for this model (chapters 11 and 13).";
    return tabled("Without it", rows, more, ["task", "loss", "score lost (key words: change of F1)", ""]);
  }
  function everything(data, head) {
    const details = make("details", {}, make("summary", {}, "All numbers of this head"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const body = make("tbody", {}, ...data.grids.map((g) => make("tr", {},
        make("th", { scope: "row" }, g.title), make("td", {}, told(g, head)),
        make("td", {}, g.control === undefined ? "" : stands(g, head)),
        make("td", {}, from(data, g)))));
      const top = make("thead", {}, make("tr", {}, ...["what", "this head", "against", "from"].map((t) => make("th", { scope: "col" }, t))));
      details.append(make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All numbers" }, make("table", {}, top, body)));
    });
    return details;
  }
  function cardOf(data, head, { texts = "book", open = null, pages = true, level = "h3" } = {}) {
    const name = nameOf(data, head), trade = data.known[name];
    const title = make(level, { tabindex: -1, class: "title" }, `Head ${name} of ${data.model}${trade ? `, the ${trade} head` : ""}`);
    const about = [typeOf(data, head) && `type: ${typeOf(data, head)}`, `layer ${Math.floor(head / data.heads) + 1} of ${data.layers}`].filter(Boolean);
    const near = (data.nearest ? data.nearest[head] : []).map(([other, far]) => {
      const said = [mapOf(data, other, { "aria-hidden": "true" }), `${nameOf(data, other)} `, small(`${far.toFixed(3)}${NBSP}nats`)];
      return open ? [fill(button("", () => open(other), { "aria-label": `Head ${nameOf(data, other)}, divergence ${far.toFixed(3)} nats` }), {}, said)] : said;
    });
    const speak = (data.mentions[name] || []).map(([number, title, page, count]) => {
      const said = `${number} ${title}`;
      return [pages ? make("a", { href: page }, said) : said, small(` ${count}${NBSP}×`)];
    });
    const alike = listed("Heads that attend most alike", near, "Not recorded for this model.");
    alike.classList.add("near");
    const sentences = make("section", { class: "sentences" }, make("h4", {}, "Three sentences"),
      ...Object.values(data.examples).map((example) => linesOf(data, head, example)));
    const spoken = listed("Chapters that name it", speak, data.model === "minilm" ? "None does." : "The chapters' text names heads of minilm.");
    return make("article", { class: "head-card", "aria-label": `Head ${name} of ${data.model}` }, title,
      make("p", { class: "about" }, about.join("; ")),
      make("div", { class: "pictures" }, meanMap(data, head), profileOf(data, head)),
      shares(data, head, texts), sentences, specialities(data, head, texts), removal(data, head, texts), alike, spoken, everything(data, head));
  }

  // ------------------------------------------------------------------ the page

  function start(root) {
    if (root.dataset.drawn) return;
    root.dataset.drawn = "yes";
    const { folder, files, page } = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const names = Object.keys(files);
    const state = { model: names[0], head: null, other: null, colour: "type", texts: "book", arrange: "layers", maps: true, focus: 0, query: "" };
    let data = null, tiles = [], cells = [];

    const chooser = (label, options, change) => {
      const select = make("select", {});
      for (const [value, text] of options) select.append(new Option(text, value));
      select.addEventListener("change", () => change(select.value));
      return [make("label", {}, label, select), select];
    };
    const [modelLabel, modelSelect] = chooser("Model", names.map((n) => [n, n]), (model) => open(model, null));
    const [textsLabel, textsSelect] = chooser("Numbers from", Object.entries(TEXTS), (texts) => { state.texts = texts; paint(); card(); });
    const [colourLabel, colourSelect] = chooser("Colour by", [], (colour) => { state.colour = colour; paint(); });
    const ways = { layers: "by layer", alike: "alike side by side", types: "by type" };
    const group = make("div", { class: "ways", role: "radiogroup", "aria-label": "Arrange the heads" }, "Arrange");
    const radios = Object.fromEntries(Object.entries(ways).map(([way, text]) => {
      const input = make("input", { type: "radio", name: `atlas-${names[0]}`, value: way });
      input.addEventListener("change", () => arrange(way));
      group.append(make("label", {}, input, text));
      return [way, input];
    }));
    const mapsBox = make("input", { type: "checkbox" });
    mapsBox.checked = true;
    mapsBox.addEventListener("change", () => { state.maps = mapsBox.checked; paint(); });
    const search = make("input", { type: "search", placeholder: "objects, previous token, coreference, [SEP]", "aria-label": "Search heads by what they do" });
    search.addEventListener("input", () => { state.query = search.value; find(); });
    const found = make("div", { class: "found", "aria-live": "polite" });
    const legend = make("div", { class: "legend" }), caption = make("p", { class: "caption" }), lacking = make("p", { class: "none" });
    const stage = make("div", { class: "stage", role: "group", "aria-label": "All heads" });
    const says = make("p", { class: "says", "aria-live": "polite" }), cards = make("div", { class: "cards" });
    const help = make("p", { class: "help" }, "Click a head, or move with the arrow keys and press Enter, for its card; Escape closes it. Keys: L by layer, A alike, T by type, C next colour, M maps or numbers, / search.");
    const left = make("div", { class: "left" }, stage, says, help, lacking);
    root.append(
      make("div", { class: "bar" }, modelLabel, textsLabel, colourLabel),
      make("div", { class: "bar" }, group, make("label", {}, mapsBox, "maps"), make("label", { class: "search" }, "Find ", search)),
      found, make("div", { class: "key" }, legend, caption),
      make("div", { class: "both" }, left, cards));

    function fail(model) {
      says.textContent = `The data of ${model} could not be read: ${folder}${files[model]} is missing beside this page.`;
    }
    function open(model, head, other) {
      return load(model, folder, files).then((loaded) => {
        const changed = data !== loaded;
        data = loaded;
        state.model = modelSelect.value = model;
        if (head !== undefined) state.head = head === null ? null : Math.min(head, data.count - 1);
        state.other = other === undefined ? state.other : other;
        if (changed) draw();
        card();
      }).catch((error) => { fail(model); throw error; });
    }

    // ---- heads

    function draw() {
      stage.textContent = "";
      tiles = [...Array(data.count).keys()].map((head) => {
        const tile = make("button", { type: "button", class: "tile", tabindex: -1 }, mapOf(data, head, { "aria-hidden": "true" }), make("span", {}));
        tile.addEventListener("click", () => select(head));
        tile.addEventListener("focus", () => { move(head, false); speak(head); }); // however it came there
        tile.addEventListener("pointerenter", () => speak(head));
        return tile;
      });
      stage.append(...tiles);
      state.focus = Math.min(state.focus, data.count - 1);
      const both = new Set(data.grids.map((g) => g.texts));
      if (!both.has(state.texts)) state.texts = [...both][0] || "book";
      for (const option of textsSelect.options) option.disabled = !both.has(option.value);
      textsSelect.value = state.texts;
      radios.alike.disabled = !data.alike;
      if (radios[state.arrange].disabled) state.arrange = "layers";
      colours();
      lacking.textContent = data.lacking.length
        ? `Not recorded for ${data.model}: ${data.lacking.map((one) => `${one.group.toLowerCase()} (chapter ${one.chapter})`).join(", ")}.` : "";
      arrange(state.arrange);
      find();
    }
    function colours() {
      colourSelect.textContent = "";
      colourSelect.append(new Option("type", "type"));
      const groups = new Map();
      for (const grid of data.grids) {
        if (!groups.has(grid.group)) groups.set(grid.group, new Map());
        groups.get(grid.group).set(grid.key, grid.title);
      }
      for (const [name, grids] of groups) {
        const part = make("optgroup", { label: name });
        for (const [key, title] of grids) part.append(new Option(title, key));
        colourSelect.append(part);
      }
      const values = [...colourSelect.options].map((option) => option.value);
      if (!values.includes(state.colour)) state.colour = values[0];
      colourSelect.value = state.colour;
    }
    function gridOf(key) {
      const same = data.grids.filter((g) => g.key === key);
      return same.find((g) => g.texts === state.texts) || same[0];
    }

    // where each head stands: [column, row] in cells, and the headings between them
    function places() {
      const columns = data.heads, rows = [], headings = [];
      let height = data.layers;
      if (state.arrange === "alike") data.alike.forEach(([row, column]) => rows.push([column, row]));
      else if (state.arrange === "types") {
        height = 0;
        data.types.names.forEach((name, type) => {
          const own = [...Array(data.count).keys()].filter((head) => data.types.of[head] === type);
          if (!own.length) return;
          headings.push([`${name}: ${own.length}`, height]);
          height += 0.6;
          own.forEach((head, i) => { rows[head] = [i % columns, height + Math.floor(i / columns)]; });
          height += Math.ceil(own.length / columns) + 0.15;
        });
      } else for (let head = 0; head < data.count; head++) rows.push([head % columns, Math.floor(head / columns)]);
      return { rows, headings, height };
    }
    function arrange(way) {
      state.arrange = way;
      radios[way].checked = true;
      const layers = way === "layers", { rows, headings, height } = places();
      const left = layers ? 22 : 0, top = layers ? 18 : 0;
      const cell = Math.max(16, Math.min(68, Math.floor((stage.clientWidth - left) / data.heads)));
      const tall = cell < 40 ? cell : cell + 11;
      stage.querySelectorAll(".label").forEach((label) => label.remove());
      const label = (text, x, y, kind) => stage.append(make("span", { class: `label ${kind}`, style: `left:${x}px;top:${y}px;width:${cell}px`, "aria-hidden": "true" }, text));
      if (layers) {
        for (let h = 0; h < data.heads; h++) label(h + 1, left + h * cell, 0, "column");
        for (let l = 0; l < data.layers; l++) label(l + 1, 0, top + l * tall + tall / 2 - 9, "row");
      }
      for (const [text, row] of headings) label(text, 0, row * tall + (cell < 40 ? -1 : 12), "kind");
      tiles.forEach((tile, head) => {
        const [x, y] = rows[head];
        tile.style.cssText = `width:${cell - 2}px;height:${tall - 2}px;transform:translate(${left + x * cell}px,${top + y * tall}px)`;
      });
      cells = rows;
      stage.style.height = `${top + height * tall}px`;
      stage.classList.toggle("tiny", cell < 40);
      paint();
    }
    function paint() {
      const byType = state.colour === "type", grid = byType ? null : gridOf(state.colour);
      const scale = grid && scaleOf(grid);
      tiles.forEach((tile, head) => {
        const said = byType ? typeOf(data, head) : told(grid, head), name = nameOf(data, head);
        const colour = byType ? data.types.colours[data.types.of[head]] : scale.of(grid.value[head]);
        tile.style.backgroundColor = colour;
        tile.style.color = byType ? (data.types.of[head] % 2 ? "white" : "black") : scale.dark(grid.value[head]) ? "white" : "black";
        tile.lastChild.textContent = state.maps || byType ? name : grid.labels ? grid.labels[head] : bare(grid.value[head], grid);
        tile.tabIndex = head === state.focus ? 0 : -1;
        tile.setAttribute("aria-label", `Head ${name}: ${byType ? "type" : grid.title} ${said}`);
        tile.setAttribute("aria-pressed", head === state.head);
      });
      stage.classList.toggle("plain", !state.maps);
      key(grid, scale);
      if (data) speak(state.focus, true);
    }
    function key(grid, scale) {
      legend.textContent = "";
      if (!grid) {
        const used = data.types.names.map((name, type) => [name, data.types.colours[type]]).filter((_, type) => data.types.of.includes(type));
        legend.append(make("ul", {}, ...used.map(([name, colour]) => make("li", {}, make("i", { style: `background:${colour}` }), name))));
        caption.textContent = `Type: group of heads by how far they look, named after the type it stands for where it fits; ${from(data, { source: data.types.source })}.`;
        return;
      }
      const steps = [0, 0.25, 0.5, 0.75, 1].map((part) => scale.of(scale.ends[0] + part * (scale.ends[1] - scale.ends[0])));
      legend.append(make("span", {}, bare(scale.ends[0], grid)), make("i", { class: "ramp", style: `background:linear-gradient(to right,${steps})` }), make("span", {}, `${bare(scale.ends[1], grid)}${unitOf(grid)}`));
      const moved = grid.texts === state.texts ? "" : ` Not recorded on ${TEXTS[state.texts]}; these are from ${TEXTS[grid.texts]}.`;
      const control = grid.control === undefined ? "" : Array.isArray(grid.control)
        ? `; mean of ${grid.against}: ${bare(grid.control.reduce((a, b) => a + b, 0) / grid.control.length, grid)}${unitOf(grid)}` : `; ${stands(grid)}`;
      caption.textContent = `${grid.title[0].toUpperCase()}${grid.title.slice(1)}; ${from(data, grid)}${control}.${moved}`;
    }
    function speak(head, quiet) {
      if (quiet && says.textContent && state.head === null) return;
      const extra = state.colour === "type" ? "" : `${gridOf(state.colour).title} ${told(gridOf(state.colour), head)}`;
      says.textContent = `${nameOf(data, head)}: ${[extra, typeOf(data, head)].filter(Boolean).join("; ")}`;
    }

    // ---- cards

    function select(head, focus) {
      state.head = head;
      move(head, false);
      card(focus);
    }
    function close() {
      state.head = state.other = null;
      card();
      tiles[state.focus].focus();
    }
    function write() {
      const one = state.head === null ? "" : address(state.model, nameOf(data, state.head));
      const two = one && state.other ? `+${address(state.other.data.model, nameOf(state.other.data, state.other.head))}` : "";
      const now = one || two ? `#${one}${two}` : location.pathname + location.search;
      if (one ? location.hash !== now : /\d+-\d+$/.test(location.hash)) history.replaceState(null, "", now); // other anchors stay
    }
    function card(focus) {
      cards.textContent = "";
      root.classList.toggle("opened", state.head !== null);
      tiles.forEach((tile, head) => tile.setAttribute("aria-pressed", head === state.head));
      write();
      if (state.head === null) return;
      const one = cardOf(data, state.head, { texts: state.texts, open: (head) => select(head, true), pages: page });
      const tools = make("div", { class: "tools" }, beside(), button("Close", close));
      cards.append(tools, one);
      if (state.other) {
        const { data: own, head } = state.other;
        const two = cardOf(own, head, { texts: state.texts, open: (next) => { state.other.head = next; card(); }, pages: page });
        cards.append(two);
      }
      cards.classList.toggle("two", Boolean(state.other));
      settle();
      if (focus) cards.querySelector(".title").focus({ preventScroll: true });
      if (cards.getBoundingClientRect().top > window.innerHeight * 0.8 || focus) cards.scrollIntoView({ block: "nearest" });
    }
    function settle() { // the heads stay in view where cards stand beside them, not where they stand below
      root.classList.toggle("beside", cards.offsetLeft > left.offsetLeft + 8);
    }
    function beside() {
      const other = state.other, [modelPart, model] = chooser("Beside", [["", "nothing"], ...names.map((n) => [n, n])], () => go());
      const head = make("select", { "aria-label": "Head to set beside it" });
      const fillHeads = (own, chosen) => {
        head.textContent = "";
        for (let n = 0; n < own.count; n++) head.append(new Option(nameOf(own, n), n, false, n === chosen));
        head.hidden = false;
      };
      head.hidden = true;
      model.value = other ? other.data.model : "";
      if (other) fillHeads(other.data, other.head);
      const go = () => {
        if (!model.value) { state.other = null; card(); return; }
        load(model.value, folder, files).then((own) => {
          const chosen = state.other && state.other.data === own ? state.other.head : Math.min(state.head, own.count - 1);
          state.other = { data: own, head: chosen };
          card();
        }).catch(() => fail(model.value));
      };
      head.addEventListener("change", () => { state.other.head = +head.value; card(); });
      modelPart.append(head);
      return modelPart;
    }

    // ---- search

    function matches(query) {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean), whole = words.join(" ");
      const scored = data.grids.filter((g) => g.texts === state.texts || !data.grids.some((o) => o.key === g.key && o.texts === state.texts))
        .map((grid, order) => {
          const title = grid.title.toLowerCase(), all = `${title} ${grid.words} ${grid.of || ""} ${grid.group}`.toLowerCase();
          if (!words.every((word) => all.includes(word) || all.includes(word.replace(/s$/, "")))) return null;
          const exact = grid.of === whole ? 3 : title.includes(whole) ? 2 : words.every((word) => title.includes(word)) ? 1 : 0;
          return { grid, exact, order };
        }).filter(Boolean).sort((a, b) => b.exact - a.exact || a.order - b.order);
      const first = scored[0];
      if (first) {
        const most = (one) => Math.max(...one.grid.value);
        const twins = scored.filter((one) => one.exact === first.exact && one.grid.of && one.grid.of === first.grid.of && GOVERNORS.includes(one.grid.quantity) && one.grid.source === first.grid.source);
        const best = twins.reduce((top, one) => (most(one) > most(top) ? one : top), first);
        scored.splice(scored.indexOf(best), 1);
        scored.unshift(best);
      }
      return scored.map(({ grid }) => grid);
    }
    function find(chosen) {
      found.textContent = "";
      if (!data || !state.query.trim()) return;
      const grids = matches(state.query), grid = chosen || grids[0];
      if (!grid) {
        found.append(make("p", {}, `Nothing that is recorded of ${data.model} is called “${state.query}”. Try a relation (objects), a place ([SEP], previous token), coreference, key words, a task.`));
        return;
      }
      const order = [...Array(data.count).keys()].sort((a, b) => (grid.least ? 1 : -1) * (grid.value[a] - grid.value[b]));
      const list = make("ol", {}, ...order.map((head) => make("li", {}, button(`${nameOf(data, head)}  ${told(grid, head)}`, () => select(head, true)))));
      const others = grids.filter((g) => g !== grid).slice(0, 6);
      found.append(make("p", {}, make("strong", {}, `Heads by ${grid.title}`), ` (${from(data, grid)}${grid.control === undefined || Array.isArray(grid.control) ? "" : `; ${stands(grid)}`})`), list);
      if (others.length) found.append(make("p", { class: "others" }, "Also: ", ...others.map((g) => button(g.title, () => find(g)))));
      state.colour = grid.key;
      colourSelect.value = grid.key;
      paint();
    }

    // ---- keys

    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    function neighbour([dx, dy]) {
      let best = state.focus, least = Infinity;
      const [x0, y0] = cells[state.focus];
      cells.forEach(([x, y], head) => {
        const along = (x - x0) * dx + (y - y0) * dy, aside = Math.abs((x - x0) * dy) + Math.abs((y - y0) * dx);
        if (along > 0.01 && along + 3 * aside < least) [best, least] = [head, along + 3 * aside];
      });
      return best;
    }
    function move(head, focus = true) {
      tiles[state.focus].tabIndex = -1;
      state.focus = head;
      tiles[head].tabIndex = 0;
      if (focus) tiles[head].focus();
    }
    function nextColour() {
      colourSelect.selectedIndex = (colourSelect.selectedIndex + 1) % colourSelect.options.length;
      state.colour = colourSelect.value;
      paint();
    }
    const keys = {
      l: () => arrange("layers"), a: () => data.alike && arrange("alike"), t: () => arrange("types"), c: nextColour,
      m: () => { mapsBox.checked = state.maps = !state.maps; paint(); }, "/": () => search.focus(),
    };
    stage.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !data) return;
      if (steps[event.key]) move(neighbour(steps[event.key]));
      else if (event.key === "Home") move(0);
      else if (event.key === "End") move(data.count - 1);
      else if (event.key === "Enter" || event.key === " ") select(state.focus, true);
      else if (event.key === "Escape" && state.head !== null) close();
      else if (keys[event.key.toLowerCase()]) keys[event.key.toLowerCase()]();
      else return;
      event.preventDefault();
    });
    cards.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
    search.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { search.value = state.query = ""; find(); }
    });

    // ---- addresses: #3-5, #minilm/3-5, #minilm/3-5+mpnet/1-2

    function parsed(part) {
      const at = part.lastIndexOf("/"), model = at < 0 ? state.model : decodeURIComponent(part.slice(0, at)), name = part.slice(at + 1);
      return /^\d+-\d+$/.test(name) && files[model] !== undefined ? { model, name } : null;
    }
    function follow() {
      let asked = [];
      try { asked = location.hash.slice(1).split("+").map(parsed); } catch { asked = []; }
      const [one, two] = asked;
      if (!one) return data ? Promise.resolve() : open(state.model, null);
      const second = two ? load(two.model, folder, files).then((own) => ({ data: own, head: headOf(own, two.name) })) : Promise.resolve(null);
      return Promise.all([load(one.model, folder, files), second]).then(([own, other]) => {
        const head = headOf(own, one.name);
        return open(one.model, head < 0 ? null : head, other && other.head >= 0 ? other : null).then(() => {
          if (head < 0) says.textContent = `${own.model} has no head ${one.name}: ${own.layers} layers of ${own.heads} heads.`;
          else move(head, false);
        });
      });
    }
    addEventListener("hashchange", () => follow().catch(() => {}));
    new ResizeObserver(() => { if (data) { settle(); arrange(state.arrange); } }).observe(stage);
    follow().catch(() => {});
  }

  // ------------------------------------------------------------------ figures whose points are heads

  function attach(figure, { model, folder, files, page }) {
    const svg = figure.querySelector(".plot svg");
    if (!svg || figure.dataset.atlas) return;
    figure.dataset.atlas = "yes";
    const place = make("div", { class: "atlas under-figure" });
    figure.after(place);
    const show = () => {
      const point = svg.querySelector(".point[aria-pressed=true]"), name = point && point.getAttribute("aria-label");
      place.textContent = "";
      if (!name || !/^\d+-\d+$/.test(name)) return;
      load(model, folder, files).then((data) => {
        const head = headOf(data, name);
        if (head < 0) return;
        place.textContent = "";
        const more = make("a", { href: `${page}#${address(model, name)}` }, "Open in the atlas");
        place.append(make("div", { class: "tools" }, more, button("Close", () => { place.textContent = ""; })), cardOf(data, head, { level: "p" }));
      }).catch(() => { place.textContent = `The data of ${model} are missing beside this page.`; });
    };
    svg.addEventListener("click", () => setTimeout(show));
    svg.addEventListener("keydown", (event) => { if ([" ", "Enter", "Escape"].includes(event.key)) setTimeout(show); });
  }

  window.Atlas = { start, attach };
  const begin = () => {
    document.querySelectorAll(".atlas[data-page]").forEach(start);
    const told = document.querySelector("script[data-atlas]");
    if (told) document.querySelectorAll(".touch").forEach((figure) => attach(figure, JSON.parse(told.dataset.atlas)));
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
