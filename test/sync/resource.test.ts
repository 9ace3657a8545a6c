import { expect, test } from 'vitest';
import { checkResources, type Resource } from '../../src/sync/resource.ts';
import { RESOURCES } from '../support/usual-resources.ts';

const folders = { name: 'folders', title: 'Folders', route: '/folders' };
const check = (...further: Resource[]) => checkResources([...RESOURCES, ...further]);

test('the resources of the fork pass, and so do further ones', () => {
  expect(() =>
    check(
      { ...folders, intervalMinutes: 44_640, columns: [{ title: 'Name', path: 'name' }] },
      { name: 'sub-Tags_2', title: 'Tags', route: '/tags/tag_1/children' },
    ),
  ).not.toThrow();
});

test.each([
  [{ name: 'crm:folders' }, '("crm:folders"): name must start with a letter'],
  [{ name: '__proto__' }, '("__proto__"): name must start with a letter'],
  [{ name: 'a/b' }, '("a/b"): name must start with a letter'],
  [{ name: '' }, '(""): name must start with a letter'],
  [{ name: undefined }, '(undefined): name is missing'],
  [{ name: 'Status' }, 'name is taken by a page'],
  [{ name: 'changes' }, 'name is taken by a page'],
  [{ name: 'contacts' }, 'two resources have the name "contacts"'],
  [{ title: ' ' }, '("folders"): title is empty'],
  [{ title: undefined }, '("folders"): title is missing'],
  [{ route: undefined }, '("folders"): route is missing'],
  [{ route: 'folders' }, 'route must start with "/"'],
  [{ route: '.crm.example/x' }, 'route must start with "/"'],
  [{ route: '@crm.example/x' }, 'route must start with "/"'],
  [{ route: '/folders?sort=name' }, 'and have no blanks, "?" or "#"'],
  [{ intervalMinutes: 0 }, 'intervalMinutes must be a whole number of minutes from 1'],
  [{ intervalMinutes: 1.5 }, 'intervalMinutes must be a whole number'],
  [{ intervalMinutes: 44_641 }, 'to 44,640 (31 days)'],
  [{ columns: [{ title: 'Name', path: ' ' }] }, 'columns.0.path is empty'],
  [{ columns: [{ title: 'Name' }] }, 'columns.0.path is missing'],
])('a resource with %j is refused with the reason', (part, problem) => {
  expect(() => check({ ...folders, ...part } as Resource)).toThrow(problem);
});

test('the error names all problems at once, and holes in the list', () => {
  const list = [{ name: 'a b', title: '', route: 'x' }];
  list.length = 2;
  expect(() => checkResources(list)).toThrow(
    /resources\.ts:\n {2}resource 1 \("a b"\): name .*\n.*title .*\n.*route .*\n {2}resource 2 \(undefined\).*is not a resource/,
  );
});
