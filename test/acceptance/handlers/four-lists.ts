/** As many lists as there are processes. Their records are there from the first day of a company. */
export const RESOURCES = ['contacts', 'conversations', 'teammates', 'inboxes'].map((name) => {
  return { name, title: name, route: `/${name}` };
});
