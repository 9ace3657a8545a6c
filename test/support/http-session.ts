import {
  type Fields,
  type HttpAnswer,
  type RequestOptions,
  HttpSession as Session,
} from '../../src/demo/http-session.ts';
import { type HtmlForm, parseForms } from './html-forms.ts';

/** An answer whose forms can be found. */
export interface HttpPage extends HttpAnswer {
  forms(): HtmlForm[];
  /** The one form whose action's path is this, or matches; throws when there is none or several. */
  form(action: string | RegExp): HtmlForm;
}

/** A browser without JavaScript: keeps cookies, follows redirects, submits forms. */
export interface HttpSession {
  cookies: Session['cookies'];
  /** @param target absolute, or from the base address */
  get(target: string | URL, options?: RequestOptions): Promise<HttpPage>;
  post(target: string | URL, fields?: Fields, options?: RequestOptions): Promise<HttpPage>;
  /** Sends a form as it stands in the page, with `fields` set over it. */
  submit(form: HtmlForm, fields?: Fields, options?: RequestOptions): Promise<HttpPage>;
}

/** Opens a session of its own, with no cookies, at the base address of an app. */
export function createHttpSession(baseUrl: string): HttpSession {
  const session = new Session(baseUrl);
  const get: HttpSession['get'] = async (target, options) => withForms(await session.get(target, options));
  // As a form of the app's own pages is sent.
  const post: HttpSession['post'] = async (target, fields, options = {}) => {
    const headers = { 'sec-fetch-site': 'same-origin', ...options.headers };
    return withForms(await session.post(target, fields, { ...options, headers }));
  };
  return {
    cookies: session.cookies,
    get,
    post,
    submit: (form, fields = {}, options = {}) => {
      const all = new URLSearchParams(form.fields);
      for (const [name, value] of new URLSearchParams(fields)) all.set(name, value);
      if (form.method === 'POST') return post(form.action, all, options);
      const target = new URL(form.action);
      target.search = all.toString();
      return get(target, options);
    },
  };
}

function withForms(answer: HttpAnswer): HttpPage {
  const forms = (): HtmlForm[] => parseForms(answer.body, answer.url.href);
  const form = (action: string | RegExp): HtmlForm => {
    const found = forms().filter(({ action: { pathname } }) =>
      typeof action === 'string' ? pathname === action : action.test(pathname),
    );
    const [first] = found;
    if (first !== undefined && found.length === 1) return first;
    const paths = forms().map(({ action: { pathname } }) => pathname);
    throw new Error(
      `${found.length} forms of ${answer.url.pathname} go to ${action}; it has: ${paths.join(', ')}`,
    );
  };
  return { ...answer, forms, form };
}
