'use strict';
// The playground's C++ code as the page calls it, in Node: answers_test.js FOLDER, where `./run playground` has put it.

const assert = require('assert');
const path = require('path');

require(path.resolve(process.argv[2], 'tegula.js'))().then((module) => {
  const call = module.cwrap('tegula_playground', 'string', ['string']);
  const ask = (question) => JSON.parse(call(JSON.stringify(question)));
  const layout = (expr) => ask({about: 'layout', expr, bits: 16});

  const composed = layout('composition((4,4):(4,1), (4,2,2):(2,1,8))');
  assert.strictEqual(composed.text, '((2,2),2,2):((8,1),4,2)');
  assert.strictEqual(composed.size, 16);
  assert.strictEqual(composed.cosize, 16);
  assert.strictEqual(composed.drawings.length, 2);
  for (const {svg} of composed.drawings) assert(svg.startsWith('<svg'));
  assert.strictEqual(layout('size((4,8))').text, '32');
  assert.strictEqual(layout('(16,8):(1@0,1@1)').drawings.length, 1);
  assert(layout('composition((3,4):(4,1), 4:2)').error.includes('no layout is A(B(i))'));
  assert(layout('(4,8').error.includes('column 5'));
  assert(layout('(4611686018427387904,4)').error);
  assert(layout('<script>alert(1)</script>').error);

  const threads = ask({about: 'threads', expr: '((4,8),(2,2)):((32,1),(16,8))', rows: 16, columns: 8});
  assert.strictEqual(threads.drawings.length, 1);
  assert(ask({about: 'threads', expr: '(4,8)', rows: 2, columns: 2}).drawings[0].refused.includes('outside the tile'));
  const large = layout('(512,512)');
  assert.strictEqual(large.size, 262144);
  assert(large.drawings[0].refused.includes('65536 cells'));
  assert(ask({about: 'threads', expr: '(4,8)', rows: 0, columns: 2}).error.includes('rows must be'));

  assert(ask({about: 'atom', atom: 'SM80_16x8x16_F32F16F16F32_TN'}).drawings[0].svg.startsWith('<svg'));
  assert(ask({about: 'atom', atom: 'SM80_16x8x16'}).error.includes('most similar'));

  const access = ask({about: 'access', memory: '(32,32):(32,1)', threads: '(32,1):(1,1)', bits: 32, bytes: 4});
  assert.strictEqual(access.conflicts, 31);
  assert(access.swizzled.startsWith('Sw<'));
  assert.strictEqual(access.drawings.length, 3);

  assert(ask({about: 'nothing'}).error);
  assert(JSON.parse(call('no JSON')).error);
  console.log('the playground answers');
}).catch((error) => {
  console.error(error);
  process.exit(1);
});
