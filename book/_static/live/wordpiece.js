// WordPiece, as BERT's tokenizer does it: split a text into words and marks, then each word into the longest pieces of the vocabulary.
class WordPiece {
  // From the tokenizer.json of a model.
  constructor({ model, added_tokens, normalizer }) {
    this.ids = new Map([...Object.entries(model.vocab), ...added_tokens.map(({ content, id }) => [content, id])]);
    this.names = new Map([...this.ids].map(([piece, id]) => [id, piece]));
    this.lowercase = normalizer.lowercase;
    this.strip_accents = normalizer.strip_accents ?? normalizer.lowercase;
  }

  // The words of a text, each an array of ids; what is typed is text, [SEP] too.
  words(text) {
    return this.split(this.clean(text)).map((word) => this.pieces(word));
  }

  clean(text) {
    text = text.replace(/(?![\t\n\r])[\uFFFD\p{Cc}\p{Cf}\p{Co}]/gu, "").replace(/\p{White_Space}/gu, " ");
    if (this.strip_accents) text = text.normalize("NFD").replace(/\p{Mn}/gu, "");
    return this.lowercase ? Array.from(text, (sign) => sign.toLowerCase()).join("") : text; // sign by sign: no final sigma
  }

  // At blanks, and around punctuation and Chinese characters, which stand alone.
  split(text) {
    const alone = /([\p{P}$+<=>^`|~]|[\u4E00-\u9FFF\u3400-\u4DBF\uF900-\uFAFF\u{20000}-\u{2A6DF}\u{2A700}-\u{2CEAF}\u{2F800}-\u{2FA1F}])/gu;
    return text.replace(alone, " $1 ").split(" ").filter(Boolean);
  }

  pieces(word) {
    const signs = Array.from(word), found = [];
    if (signs.length > 100) return [this.ids.get("[UNK]")];
    for (let start = 0, end; start < signs.length; start = end) {
      const piece = (stop) => (start ? "##" : "") + signs.slice(start, stop).join("");
      for (end = signs.length; end > start && !this.ids.has(piece(end)); end--);
      if (end === start) return [this.ids.get("[UNK]")]; // no piece fits: the whole word is unknown
      found.push(this.ids.get(piece(end)));
    }
    return found;
  }
}
