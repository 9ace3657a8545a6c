import { describe, expect, it } from 'vitest';
import { summarizeRecord } from '../../../src/web/view/record-summary.ts';

const summary = (document: unknown) => summarizeRecord('crd_1', JSON.stringify(document));

describe('summarizeRecord', () => {
  it('takes a name or a subject for the title, and telling words for the rest', () => {
    const contact = {
      _links: { self: 'https://api.example/contacts/crd_1', related: { owner: 'not this' } },
      id: 'crd_1',
      status: 'open',
      name: 'Zoë Nakamura',
      avatar: 'https://example.com/zoe.png',
      created: '2025-06-10T12:00:00Z',
      handles: [{ source: 'email', handle: 'zoe@example.com' }],
      description: 'Head of procurement',
    };
    expect(summary(contact)).toEqual({
      title: 'Zoë Nakamura',
      secondary: 'Head of procurement · zoe@example.com · open',
    });
    expect(summary({ id: 'cnv_1', subject: 'Where is my order?' }).title).toBe('Where is my order?');
  });

  it('falls back to the first words, then to the id', () => {
    expect(summary({ id: 'crd_1', name: ' ', label: 'Important' })).toEqual({
      title: 'Important',
      secondary: '',
    });
    expect(summary({ id: 'crd_1', owner: 'tea_4711', n: 3 })).toEqual({ title: 'crd_1', secondary: '' });
  });

  it.each([['[1,"two",[3]]'], ['"text"'], ['null'], ['7'], ['{'], ['']])('renders %s', (document) => {
    expect(summarizeRecord('x1', document).title).toBe(document.includes('two') ? 'two' : 'x1');
  });

  it('cuts long texts between characters', () => {
    const { title } = summary({ name: '😀'.repeat(500) });
    expect(Array.from(title)).toHaveLength(120);
    expect(title.isWellFormed()).toBe(true);
  });
});
