import { expect, test } from 'vitest';
import { RESOURCES } from '../../src/integration/resources.ts';
import { checkResources, type Resource } from '../../src/sync/resource.ts';

const teammates = { name: 'teammates', title: 'Teammates', route: '/teammates' };
const check = (...further: Resource[]) => checkResources([...RESOURCES, ...further]);

test('what is synced, and what README adds, can be used', () => {
  expect(() =>
    check(
      { ...teammates, intervalMinutes: 44_640, columns: [{ title: 'Name', path: 'name' }] },
      { name: 'sub-Tags_2', title: 'Tags', route: '/tags/tag_1/children' },
    ),
  ).not.toThrow();
});

test.each([
  [{ name: 'crm:teammates' }, 'the name "crm:teammates" has to begin with a letter'],
  [{ name: '__proto__' }, 'the name "__proto__" has to begin with a letter'],
  [{ name: 'a/b' }, 'the name "a/b" has to begin with a letter'],
  [{ name: '' }, 'the name "" has to begin with a letter'],
  [{ name: 'status' }, 'the name "status" is taken'],
  [{ name: 'changes' }, 'the name "changes" is taken'],
  [{ name: 'contacts' }, 'the name "contacts" stands there twice'],
  [{ title: ' ' }, '"teammates" needs a title'],
  [{ route: 'teammates' }, 'the route "teammates" of "teammates" has to begin with "/"'],
  [{ route: '.crm.example/x' }, 'the route ".crm.example/x" of "teammates" has to begin with "/"'],
  [{ route: '@crm.example/x' }, 'the route "@crm.example/x" of "teammates" has to begin with "/"'],
  [{ intervalMinutes: 0 }, 'the intervalMinutes of "teammates" have to be a whole number of minutes, from 1'],
  [{ intervalMinutes: 1.5 }, 'the intervalMinutes of "teammates"'],
  [{ intervalMinutes: 44_641 }, 'to 44,640 (31 days)'],
  [{ columns: [{ title: 'Name', path: ' ' }] }, 'a column of "teammates" needs a title and a path'],
  [{ columns: [{ title: '', path: 'name' }] }, 'a column of "teammates" needs'],
  [{ columns: [{ title: 'Name' }] }, 'a column of "teammates" needs'],
  [{ route: '/teammates?sort=name' }, 'the route "/teammates?sort=name" of "teammates"'],
])('an entry with %j is refused, and it is said why', (part, problem) => {
  expect(() => check({ ...teammates, ...part } as Resource)).toThrow(problem);
});

test.each(['name', 'title', 'route'])('an entry without a %s is refused, too', (member) => {
  const { [member as 'name']: _, ...entry } = teammates;
  expect(() => check(entry as typeof teammates)).toThrow('What is to be synced cannot be used');
});

test('nor can a place in the list without an entry be used', () => {
  const list = [teammates];
  list.length = 2;
  expect(() => checkResources(list)).toThrow('What is to be synced cannot be used');
});

test('all problems are told together', () => {
  expect(() => check({ name: 'a b', title: '', route: 'x' })).toThrow(
    /a b.*letter[\s\S]*title[\s\S]*route "x"/,
  );
});
