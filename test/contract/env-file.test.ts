import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadEnvFile } from '../../src/contract/env-file.ts';
import { tempDir } from '../support/temp-dir.ts';

it('fills in what is not set yet', () => {
  const path = join(tempDir(), '.env');
  writeFileSync(path, 'A=file\nB="from the file"\nC=file\n');
  const env = { A: 'real', C: '' };
  loadEnvFile(env, path);
  expect(env).toEqual({ A: 'real', B: 'from the file', C: 'file' });
});

it.each([
  [
    'SECRET=Zk3jf93#2kd',
    /line 1 a # in the value of SECRET, behind which all would be cut off: put the value into quotes/,
  ],
  ['SECRET=#Zk3jf93', /line 1 a # in the value of SECRET/],
  [
    'A=1\nSECRET="Zk3"jf93"',
    /line 2 more of SECRET behind the " that ends its value, which would be cut off/,
  ],
  ['SECRET="two\nlines\\"3"\nA=1', /line 1 more of SECRET behind/],
  ['export\tSECRET=Zk3jf93', /line 1 a blank around the name SECRET/],
  ['A=1\nSECRET\u00a0=Zk3jf93', /line 2 a blank around the name SECRET/],
  ["NAME='it's'", /line 1 more of NAME behind the ' that ends/],
  ['A=1\nPORT: 4000\n', /line 2 neither NAME=value nor a comment/],
  ['A=1\nSECRET= \r\n\nB=2', /line 2 blanks behind the = of SECRET and no value.*take the blanks out/],
  ['B=1\nSECRET=\t\nB=2', /line 2 blanks behind the = of SECRET/],
  ['SECRET= \n> partner-app@0.1.0 keys\nB=2', /line 1 blanks behind the = of SECRET.*take the blanks out/],
  ['SECRET= \r\n\r\n> partner-app@0.1.0 keys\r\n', /line 1 blanks behind the = of SECRET/],
  ['A=1\rB=2\r', /line 1 a carriage return .* without a line feed .*save the file anew with LF or CR LF/],
  ['A=1\r\n# why\rB=2\r\n', /line 2 a carriage return/],
  [
    'A=1\nSECRET=\u00a0Zk3jf93',
    /line 2 white space behind the = of SECRET that would be a part.*take it out/,
  ],
  ['SECRET= \u3000\nB=2', /line 1 white space behind the = of SECRET/],
  ['SECRET=\u00a0"Zk3jf93#2kd"', /line 1 white space behind the = of SECRET/],
  ['SECRET=Zk3\u00a0"jf93#2kd"', /line 1 a # in the value of SECRET/],
  ['SECRET=Zk3\u2028jf93#2kd', /line 1 a # in the value of SECRET/],
  ['A=1\n\nB="two\nlines\n', /line 3 a value of B that begins with " and does not end with it/],
])('refuses a file of which something would be passed over without a word: %j', (text, message) => {
  const path = join(tempDir(), '.env');
  writeFileSync(path, text);
  const env = {};
  expect(() => loadEnvFile(env, path)).toThrow(message);
  expect(env).toEqual({});
});

it('takes what is usual in such files', () => {
  const path = join(tempDir(), '.env');
  const lines = [
    '# comment',
    '> partner-app@0.1.0 keys',
    '> node --import ./src/runtime/preload.js src/cli.ts keys',
    '  # another # one',
    '\t',
    'PLAIN=a value',
    'export EXPORTED=1 # why',
    ' SPACED = two ',
    'EMPTY=',
    '',
    '> partner-app@0.1.0 keys',
    'LATER= # nothing yet',
    'UNSET=\r',
    'REMARK= \t',
    '',
    '# it comes later',
    '> partner-app@0.1.0 keys',
    'WHY=a value # see issue#5 and https://docs.example/#why',
    'TITLE=a value ## a heading',
    'KEY=abc/def+ghi==',
    'QUOTED="with # and = in it"',
    "SINGLE='a#b' # why",
    'CLOSE="a"# why',
    'NONE="" ',
    'TICKS=`a#b`',
    'PADDED="\u00a0a"',
    'INNER=a\u00a0b',
    'LONG="first #1',
    'not: a name',
    'last"',
    'AFTER=1\r',
  ];
  writeFileSync(path, lines.join('\n'));
  const env = {};
  loadEnvFile(env, path);
  expect(env).toEqual({
    PLAIN: 'a value',
    EXPORTED: '1',
    SPACED: 'two',
    EMPTY: '',
    LATER: '',
    UNSET: '',
    REMARK: '',
    WHY: 'a value',
    TITLE: 'a value',
    KEY: 'abc/def+ghi==',
    QUOTED: 'with # and = in it',
    SINGLE: 'a#b',
    CLOSE: 'a',
    NONE: '',
    TICKS: 'a#b',
    PADDED: '\u00a0a',
    INNER: 'a\u00a0b',
    LONG: 'first #1\nnot: a name\nlast',
    AFTER: '1',
  });
});

it('does without a file, but not with one that it cannot read', () => {
  const dir = tempDir();
  expect(() => loadEnvFile({}, join(dir, '.env'))).not.toThrow();
  expect(() => loadEnvFile({}, dir)).toThrow(/is a directory/);
});

it('takes a file with a byte order mark, and says of one in UTF-16 how to save it', () => {
  const path = join(tempDir(), '.env');
  writeFileSync(path, '\uFEFFA=first\r\nB=second\r\n');
  const env = {};
  loadEnvFile(env, path);
  expect(env).toEqual({ A: 'first', B: 'second' });
  writeFileSync(path, '\uFEFFA=first\n', 'utf16le');
  expect(() => loadEnvFile({}, path)).toThrow(/UTF-8/);
});

it('refuses a file with what Node has read before it, unless the environment has it, too', () => {
  const path = join(tempDir(), '.env');
  writeFileSync(path, 'NODE_ENV=test\nNODE_EXTRA_CA_CERTS=/ca.pem\n');
  expect(() => loadEnvFile({}, path)).toThrow(
    /NODE_EXTRA_CA_CERTS, which Node reads before it: set it where/,
  );
  expect(() => loadEnvFile({ NODE_EXTRA_CA_CERTS: '' }, path)).toThrow(/NODE_EXTRA_CA_CERTS/);
  const env: NodeJS.ProcessEnv = { NODE_EXTRA_CA_CERTS: '/ca.pem' };
  loadEnvFile(env, path);
  expect(env).toEqual({ NODE_EXTRA_CA_CERTS: '/ca.pem', NODE_ENV: 'test' });
  for (const proxy of ['HTTPS_PROXY', 'http_proxy', 'NO_PROXY', 'no_proxy']) {
    writeFileSync(path, `${proxy}=proxy.example.com\n`);
    expect(() => loadEnvFile({}, path)).toThrow(`${proxy}, which Node reads before it`);
  }
  writeFileSync(path, 'NODE_OPTIONS=\nNO_PROXY=\n');
  expect(() => loadEnvFile({}, path)).not.toThrow();
});
