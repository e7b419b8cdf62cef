// Search catalog: finds products by whatever words a person or a model uses.
//
// Copy this file into data/tools/ and change it: the ranking is the table WEIGHTS, the SQL is in FIND,
// and what the agent gets to see is in `shown`. The catalog itself is made by `styleeyes catalog build`,
// which prepares what makes a search forgiving, so that no word list has to be kept here:
//
//   search_words   what people type -> the index's term:  jumper -> sweater, navy -> navy and blue
//   vocabulary     every word that occurs in some product
//   slips          each of these words less one letter, to forgive spelling
//   product_words  the full-text index (FTS5), every word in the form that search_words prefers
//   script_pieces  the same for texts without spaces between words (Chinese, Japanese, Thai ...)

export const schemaVersion = "worldagents.tool.v1";

export const metadata = {
  title: "Search catalog",
  description:
    "Find products in the store's catalog by a description of what is seen (kind of garment, colour, pattern, " +
    "neckline, sleeves, details), by name, or by style code. Use hasPhotos: true for products that match_garment " +
    "can compare. Results are ranked, best first; they come from a snapshot, never from live stock.",
};

export const inputSchema = {
  type: "object",
  properties: {
    query: { type: "string", description: 'Plain words, such as "dark red short sleeve t-shirt", or a style code' },
    hasPhotos: { type: "boolean", description: "Only products that have catalog photos" },
    color: { type: "string", description: "Only products that exist in this colour or its family (navy is blue)" },
    category: { type: "string", description: "Only this kind of garment, such as jacket, t-shirt or trousers" },
    gender: { type: "string", description: "Only for men, women, boys, girls or kids" },
    limit: { type: "integer", minimum: 1, maximum: 50, description: "How many products at most; 8 unless given" },
  },
  required: ["query"],
  additionalProperties: false,
};

export const capabilities = {
  databases: { catalog: { path: "databases/catalog.sqlite", mode: "read" } },
};

export const timeoutMs = 10000;

// What a match is worth. The kind of garment counts most, then its colour; "dark" or "long" hardly at all.
// `near` is a garment of another kind that an eye may take for it, `broader` a kind that it belongs to.
const WEIGHTS = {
  garment: { asTyped: 3.4, inName: 3.2, inKind: 3, mentioned: 1.4, near: 1, broader: 0.3 },
  color: { itself: 2, mentioned: 0.5 },
  gender: 2,
  detail: 1,
  modifier: 0.3,
};
const SLIP = 0.7; // of what it would be worth without the spelling mistake
const MAX_QUERY_LENGTH = 1000;
const MAX_WORDS = 24;
const LONGEST_FORM = 3; // words in the longest entry of search_words: "zip up jacket"

// One question for all that the words of a query mean. Every parameter is bound; lists go in as JSON.
const LOOK_UP = `
  SELECT 'form' AS what, form, term, kind, relation FROM search_words
   WHERE form IN (SELECT value FROM json_each(:forms))
  UNION ALL
  SELECT 'known', word, word, NULL, NULL FROM vocabulary WHERE word IN (SELECT value FROM json_each(:forms))
  UNION ALL
  SELECT * FROM (
    SELECT 'ending', s.form, s.term, s.kind, s.relation FROM search_words s JOIN vocabulary v ON v.word = s.term
     WHERE s.form > :last AND s.form < :last || char(1114111) AND s.relation = 'same'
     ORDER BY v.products DESC, s.form LIMIT 4)
  UNION ALL
  SELECT * FROM (
    SELECT 'ending', word, word, NULL, NULL FROM vocabulary
     WHERE word > :last AND word < :last || char(1114111)
     ORDER BY products DESC, word LIMIT 4)
  UNION ALL
  SELECT 'meta', key, value, NULL, NULL FROM meta WHERE key LIKE 'snapshot%'`;

// Words that are one letter away from words nobody knows.
const LOOK_UP_SLIPS = `
  SELECT typed.key AS typed, slips.word, coalesce(s.term, slips.word) AS term, s.kind AS kind,
         max(coalesce(v.products, 0)) AS products
    FROM json_each(:typed) AS typed
    JOIN json_each(typed.value) AS cut
    JOIN slips ON slips.cut = cut.value
    LEFT JOIN search_words s ON s.form = slips.word AND s.relation = 'same'
    LEFT JOIN vocabulary v ON v.word = coalesce(s.term, slips.word)
   WHERE abs(length(slips.word) - length(typed.key)) <= 1
   GROUP BY typed.key, slips.word ORDER BY products DESC, slips.word LIMIT 40`;

// Every part of the query finds its products by itself. Parts of one concept ("jacket": the kind, a kind
// near it, a mention) count once, by the best of them; a product's score is the sum over the concepts.
// Equal scores are ordered by BM25, in which a word in the name counts more than one in the description.
const FIND = `
  WITH parts AS MATERIALIZED (
    SELECT key AS part, json_extract(value, '$.place') AS place, json_extract(value, '$.match') AS match,
           json_extract(value, '$.concept') AS concept, json_extract(value, '$.weight') AS weight,
           json_extract(value, '$.label') AS label
      FROM json_each(:parts)
  ),
  hits AS (
    SELECT product_words.rowid AS product, part,
           bm25(product_words, 8.0, 6.0, 6.0, 3.0, 2.0, 2.0, 2.0, 1.0) AS bm25
      FROM parts JOIN product_words ON product_words MATCH match WHERE place = 'words'
    UNION ALL
    SELECT script_pieces.rowid, part, 0 FROM parts JOIN script_pieces ON script_pieces MATCH match
     WHERE place = 'pieces'
    UNION ALL
    SELECT product_id, part, 0 FROM parts JOIN product_script ON instr(text, match) > 0 WHERE place = 'shortPieces'
    UNION ALL
    SELECT product_id, part, 0 FROM parts JOIN codes ON code = match WHERE place = 'codes'
    UNION ALL
    SELECT product_id, part, 0 FROM parts JOIN codes ON code >= match AND code < match || char(1114111)
     WHERE place = 'codesFrom'
  ),
  concepts AS (  -- of the columns beside max(), SQLite gives those of the row that has the maximum
    SELECT product, max(weight) AS weight, label, bm25
      FROM hits CROSS JOIN parts USING (part) GROUP BY product, concept
  ),
  found AS (
    SELECT product, sum(weight) AS score, sum(bm25) AS bm25, json_group_array(label) AS why
      FROM concepts GROUP BY product
  )
  SELECT p.style_id, p.name, p.brand, p.category, p.gender, p.colors, p.materials, p.price, p.currency,
         p.snapshot_date, p.photo_count, substr(p.description, 1, 240) AS description, found.why,
         count(*) OVER () AS total
    FROM found JOIN products p ON p.id = found.product
   WHERE (NOT :hasPhotos OR p.photo_count > 0)
     AND (:color = '' OR EXISTS (
           SELECT 1 FROM product_colors c WHERE c.product_id = p.id AND (c.color = :color OR c.family IN (
             SELECT term FROM search_words WHERE kind = 'color'
                AND form IN (SELECT value FROM json_each(:colorForms))))))
     AND (:category = '' OR instr(lower(p.category), :category) > 0 OR EXISTS (
           SELECT 1 FROM product_kinds k WHERE k.product_id = p.id AND k.kind IN (
             SELECT term FROM search_words WHERE kind = 'garment' AND relation <> 'broader'
                AND form IN (SELECT value FROM json_each(:categoryForms)))))
     AND (:gender = '' OR p.gender IS NULL OR p.gender IN ('unisex', :gender) OR p.gender IN (
             SELECT term FROM search_words WHERE kind = 'gender'
                AND form IN (SELECT value FROM json_each(:genderForms))))
   ORDER BY found.score DESC, found.bm25, p.style_id
   LIMIT :limit`;

export async function execute(ctx, input) {
  const query = input.query.slice(0, MAX_QUERY_LENGTH);
  const filters = { color: input.color ?? "", category: input.category ?? "", gender: input.gender ?? "" };
  // What is filtered by is searched for as well, so that the best of what passes the filter comes first.
  const texts = [query, filters.color, filters.category].map((text) => wordsOf(text).slice(0, MAX_WORDS));
  const last = texts[0].at(-1) ?? "";

  const { rows } = await ctx.db.query("catalog", LOOK_UP, {
    forms: JSON.stringify([...new Set(texts.flatMap(formsOf))]),
    last: last.length >= 2 ? last : "\u{10ffff}",
  });
  const meaning = readMeaning(rows);
  await addSlips(ctx, meaning, texts[0]);
  const parts = texts.flatMap((words, index) => partsOf(words, meaning, index === 0 ? last : ""));
  parts.push(...codeParts(query));

  let products = [];
  let total = 0;
  if (parts.length) {
    const found = await ctx.db.query("catalog", FIND, {
      parts: JSON.stringify(parts),
      hasPhotos: input.hasPhotos === true ? 1 : 0,
      color: fold(filters.color).trim(),
      colorForms: JSON.stringify(formsOf(wordsOf(filters.color))),
      category: fold(filters.category).trim(),
      categoryForms: JSON.stringify(formsOf(wordsOf(filters.category))),
      gender: fold(filters.gender).trim(),
      genderForms: JSON.stringify(formsOf(wordsOf(filters.gender))),
      limit: input.limit ?? 8,
    });
    products = found.rows.map(shown);
    total = found.rows[0]?.total ?? 0;
  }
  const result = { products, total, snapshotNote: snapshotNote(products, meaning.meta) };
  if (!products.length) result.note = emptyNote(parts.some((part) => !part.place.startsWith("codes")), filters, input.hasPhotos);
  return result;
}

function shown(row) {
  return {
    styleId: row.style_id,
    name: row.name,
    brand: row.brand,
    category: row.category,
    gender: row.gender,
    colors: JSON.parse(row.colors),
    materials: JSON.parse(row.materials),
    price: row.price,
    currency: row.currency,
    snapshotDate: row.snapshot_date,
    photos: row.photo_count,
    description: row.description,
    why: JSON.parse(row.why),
  };
}

// ---- words -------------------------------------------------------------------------------------------

// The folding of the catalog build: no accents, no case, no apostrophes.
function fold(text) {
  const bare = text.normalize("NFKD").replace(/\p{M}+/gu, "").normalize("NFC");
  return bare.toLowerCase().replace(/['’ʼ`´]/g, "");
}

function wordsOf(text) {
  return (fold(text).match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => word.slice(0, 64));
}

// Each word, pair and triple of neighbours: "t", "shirt", "t shirt" ...
function formsOf(words) {
  const forms = [];
  for (let length = 1; length <= LONGEST_FORM; length++) {
    for (let at = 0; at + length <= words.length; at++) forms.push(words.slice(at, at + length).join(" "));
  }
  return forms;
}

// The rows of LOOK_UP as maps: form -> its meanings; the known words; endings of the last word; meta.
function readMeaning(rows) {
  const meaning = { forms: new Map(), known: new Set(), endings: [], slips: new Map(), meta: {} };
  for (const row of rows) {
    if (row.what === "meta") meaning.meta[row.form] = row.term;
    else if (row.what === "known") meaning.known.add(row.form);
    else if (row.what === "ending") meaning.endings.push(row.term);
    else meaning.forms.set(row.form, [...(meaning.forms.get(row.form) ?? []), row]);
  }
  return meaning;
}

// Looks for words one letter away, only where a word of the query is unknown and ends in nothing known.
async function addSlips(ctx, meaning, words) {
  const typed = {};
  for (const word of words) {
    const unknown = !meaning.known.has(word) && !words.some((_, at) => coveringForm(words, at, meaning)?.has(word));
    if (unknown && word.length >= 4 && word.length <= 32 && /^\p{L}+$/u.test(word)) {
      typed[word] = [word, ...new Set([...word].map((_, at) => word.slice(0, at) + word.slice(at + 1)))];
    }
  }
  if (!Object.keys(typed).length) return;
  const { rows } = await ctx.db.query("catalog", LOOK_UP_SLIPS, { typed: JSON.stringify(typed) });
  for (const row of rows) {
    const terms = meaning.slips.get(row.typed) ?? [];
    if (terms.length < 3) meaning.slips.set(row.typed, [...terms, row]);
  }
}

// The words of the longest known form that begins at a place, or undefined.
function coveringForm(words, at, meaning) {
  for (let length = Math.min(LONGEST_FORM, words.length - at); length > 0; length--) {
    const covered = words.slice(at, at + length);
    if (meaning.forms.has(covered.join(" "))) return new Set(covered);
  }
  return undefined;
}

// ---- the query's parts: {place, match, concept, weight, label} -------------------------------------

function partsOf(words, meaning, last) {
  const parts = [];
  for (let at = 0; at < words.length; ) {
    const length = coveringForm(words, at, meaning)?.size ?? 0;
    if (length) {
      const covered = words.slice(at, at + length);
      parts.push(...knownParts(covered.join(" "), covered, meaning));
      at += length;
    } else {
      parts.push(...wordParts(words[at], meaning, words[at] === last && at === words.length - 1));
      at += 1;
    }
  }
  return parts;
}

// A form that search_words knows: a garment, a colour, a detail ...
function knownParts(form, words, meaning) {
  const rows = meaning.forms.get(form);
  const terms = (relation) => rows.filter((row) => row.relation === relation).map((row) => row.term);
  const [same, near, broader] = [terms("same"), terms("near"), terms("broader")];
  const kind = rows[0].kind;
  if (kind === "ignored") return [];
  if (kind === "gender") return [wordPart([...same, "unisex"], form, WEIGHTS.gender, `for ${same[0]}`, "gender")];
  if (kind === "color") {
    return [
      wordPart([...same, ...broader], form, WEIGHTS.color.itself, `color: ${form}`, "name colors"),
      wordPart(same, `${form} mentioned`, WEIGHTS.color.mentioned, `mentions ${form}`, "description"),
    ];
  }
  if (kind === "garment") {
    const worth = WEIGHTS.garment;
    const parts = [
      wordPart(words, form, worth.asTyped, `name: ${form}`, "name", " AND "),
      wordPart(same, form, worth.inName, `kind: ${form}`, "name"),
      wordPart(same, form, worth.inKind, `kind: ${form}`, "kind"),
      wordPart(same, form, worth.mentioned, `mentions ${form}`, "description"),
    ];
    if (near.length) parts.push(wordPart(near, form, worth.near, `near ${form}`, "name kind"));
    if (broader.length) parts.push(wordPart(broader, form, worth.broader, `may be ${form}`, "name kind"));
    // "quilted jacket" is a puffer; what else it says, "quilted", is looked for as well.
    return words.length > 1 ? [...parts, ...words.flatMap((word) => addedParts(word, meaning))] : parts;
  }
  return [wordPart(same, form, WEIGHTS[kind], `${kind}: ${form}`)];
}

// What a word inside the name of a garment adds to it: anything but another kind of garment.
function addedParts(word, meaning) {
  const kind = meaning.forms.get(word)?.[0].kind;
  if (kind === "garment") return [];
  if (kind) return knownParts(word, [word], meaning);
  return meaning.known.has(word) ? wordParts(word, meaning, false) : [];
}

// Any other word, the last one perhaps unfinished ("quil"), each perhaps misspelt.
function wordParts(word, meaning, isLast) {
  if (SCRIPT_WITHOUT_SPACES.test(word)) return scriptParts(word);
  const parts = [wordPart([word], word, WEIGHTS.detail, `word: ${word}`)];
  if (meaning.known.has(word)) return parts;
  if (isLast && meaning.endings.length) {
    parts.push(wordPart(meaning.endings, word, WEIGHTS.detail, `begins with ${word}`));
  }
  for (const slip of meaning.slips.get(word) ?? []) {
    const worth = slip.kind === "garment" ? WEIGHTS.garment.inKind : WEIGHTS.detail;
    const columns = slip.kind === "garment" ? "name kind" : "";
    parts.push(wordPart([slip.term], word, SLIP * worth, `${slip.word} for ${word}`, columns));
  }
  return parts;
}

// One FTS5 expression: any of the terms (or all), each quoted, so that no text can be taken for syntax.
function wordPart(terms, concept, weight, label, columns = "", join = " OR ") {
  const wanted = terms.map((term) => `"${term.replaceAll('"', '""')}"`).join(join);
  return { place: "words", match: columns ? `{${columns}} : (${wanted})` : wanted, concept, weight, label };
}

// Thai, Lao, Burmese, Khmer, kana, Chinese characters, Hangul.
const SCRIPT_WITHOUT_SPACES =
  /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\u{20000}-\u{3134f}]/u;

// A run without spaces is looked for as it stands, and by its stretches of one script (赤い|シャツ).
const STRETCHES =
  /\p{scx=Han}+|\p{scx=Hiragana}+|\p{scx=Katakana}+|[^\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}]+/gu;

function scriptParts(run) {
  const stretches = run.match(STRETCHES) ?? [];
  const parts = [scriptPart(run, WEIGHTS.garment.inKind)];
  return stretches.length > 1 ? [...parts, ...stretches.map((text) => scriptPart(text, WEIGHTS.detail))] : parts;
}

// The trigram index knows nothing shorter than three characters; those are looked for in the text itself.
function scriptPart(text, weight) {
  const found = { concept: text, weight, label: `text: ${text}` };
  if ([...text].length < 3) return { place: "shortPieces", match: text, ...found };
  return { place: "pieces", match: `"${text}"`, ...found };
}

// Style codes, GTINs and the like are compared by their letters and digits alone (POL-358 is pol358),
// and come first. The beginning of one counts as well where it looks like one (MH0).
function codeParts(query) {
  const chunks = [...new Set([query, ...query.split(/\s+/).slice(0, MAX_WORDS)].map(foldCode))];
  const parts = chunks
    .filter((code) => code && code.length <= 64)
    .map((code) => ({ place: "codes", match: code, concept: "code", weight: 1000, label: "style code" }));
  const start = chunks[0] ?? "";
  if (start.length >= 3 && start.length <= 32 && /\d/.test(start) && /\p{L}/u.test(start)) {
    const label = `code ${start}…`;
    parts.push({ place: "codesFrom", match: start, concept: "code", weight: 5, label });
  }
  return parts;
}

function foldCode(text) {
  return (text.normalize("NFKC").toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join("");
}

// ---- notes for the agent ---------------------------------------------------------------------------

function snapshotNote(products, meta) {
  const dates = products.map((product) => product.snapshotDate);
  const known = (products.length ? dates : [meta.snapshot_first, meta.snapshot_last]).filter(Boolean).sort();
  const undated = products.length ? dates.includes(null) : meta.snapshot_unknown > 0;
  const tail = "not live stock or price";
  if (!known.length) return `Catalog snapshot of unknown date; ${tail}`;
  const span = known[0] === known.at(-1) ? `snapshot of ${known[0]}` : `snapshots of ${known[0]} to ${known.at(-1)}`;
  return `Catalog ${span}${undated ? ", some of unknown date" : ""}; ${tail}`;
}

function emptyNote(asked, filters, hasPhotos) {
  if (!asked) return "The query holds no words to search for. Describe the garment: kind, colour, details.";
  const used = Object.entries(filters).filter(([, value]) => value).map(([name, value]) => `${name} "${value}"`);
  if (hasPhotos) used.push("hasPhotos");
  return used.length
    ? `Nothing fits with ${used.join(", ")}. Search again without one of them, or with other words.`
    : "Nothing fits. Search again with fewer or more general words.";
}
