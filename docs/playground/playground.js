'use strict';
// The page: a form for each kind of question, asked of the C++ code (tegula.js) whenever something is typed. The address's
// fragment holds the question, so that it can be shared.

const EXAMPLES = {
  layout: [
    {expr: '(4,8):(8,1)', bits: 16},
    {expr: 'composition((4,4):(4,1), (4,2,2):(2,1,8))', bits: 16},
    {expr: 'zipped_divide((8,12):(12,1), <4:1,3:1>)', bits: 16},
    {expr: 'Sw<3,3,3> o (8,64):(64,1)', bits: 16},
    {expr: '(16,8):(1@0,1@1)', bits: 16},
    {expr: 'composition((3,4):(4,1), 4:2)', bits: 16},
  ],
  threads: [
    {expr: '((4,8),(2,2)):((32,1),(16,8))', rows: 16, columns: 8},
    {expr: '(32,4):(1,32)', rows: 32, columns: 4},
  ],
  atom: [
    {atom: 'SM80_16x8x16_F32F16F16F32_TN'},
    {atom: 'SM75_U32x4_LDSM_N'},
    {atom: 'SM80_16x8x8_F32TF32TF32F32_TN'},
  ],
  access: [
    {memory: '(32,32):(32,1)', threads: '(32,1):(1,1)', bits: 32, bytes: 4},
    {memory: '(8,64):(64,1)', threads: '((8,4),8):((1,64),8)', bits: 16, bytes: 16},
  ],
};

const form = document.getElementById('form');
const refused = document.getElementById('refused');
let about = 'layout';
let ask = null;  // question -> answer

const fieldset = () => form.querySelector(`fieldset[data-about="${about}"]`);

function show(kind) {
  about = kind in EXAMPLES ? kind : 'layout';
  for (const set of form.querySelectorAll('fieldset')) set.hidden = set.dataset.about !== about;
  for (const tab of document.querySelectorAll('#tabs button')) tab.setAttribute('aria-pressed', tab.dataset.about === about);
  const examples = document.getElementById('examples');
  examples.replaceChildren(...EXAMPLES[about].map((example) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = Object.values(example)[0];
    button.onclick = () => { fill(example); answer(); };
    return button;
  }));
}

function fill(values) {
  for (const input of fieldset().querySelectorAll('input')) if (input.name in values) input.value = values[input.name];
}

function question() {
  const asked = {about};
  for (const input of fieldset().querySelectorAll('input')) asked[input.name] = input.type === 'number' ? Number(input.value) : input.value;
  return asked;
}

function figure({title, svg, refused}) {
  const element = document.createElement('figure');
  const caption = document.createElement('figcaption');
  caption.textContent = title;
  const picture = document.createElement('div');
  picture.className = 'picture';
  if (svg) picture.innerHTML = svg;  // of the C++ code, which escapes what it was given
  else picture.textContent = refused;
  element.append(caption, picture);
  return element;
}

function answer() {
  const asked = question();
  const result = ask(asked);
  refused.hidden = !('error' in result);
  refused.textContent = result.error ?? '';
  const facts = [];
  for (const [name, label] of [['text', 'result'], ['size', 'size'], ['cosize', 'cosize'], ['conflicts', 'bank conflicts'], ['swizzled', 'swizzle']]) {
    if (!(name in result)) continue;
    const term = document.createElement('dt');
    const value = document.createElement('dd');
    term.textContent = label;
    value.textContent = result[name];
    facts.push(term, value);
  }
  document.getElementById('facts').replaceChildren(...facts);
  document.getElementById('drawings').replaceChildren(...(result.drawings ?? []).map(figure));
  history.replaceState(null, '', '#' + new URLSearchParams(asked));
}

/** Shows what the address asks for, or the first example. */
function restore() {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  show(given.about);
  fill({...EXAMPLES[about][0], ...given});
  answer();
}

TegulaModule().then((module) => {
  const call = module.cwrap('tegula_playground', 'string', ['string']);
  ask = (asked) => JSON.parse(call(JSON.stringify(asked)));
  document.getElementById('tabs').onclick = ({target}) => {
    if (!target.dataset.about) return;
    show(target.dataset.about);
    if (!question()[Object.keys(EXAMPLES[about][0])[0]]) fill(EXAMPLES[about][0]);
    answer();
  };
  form.oninput = answer;
  form.onsubmit = (event) => event.preventDefault();
  window.onhashchange = restore;
  restore();
});
