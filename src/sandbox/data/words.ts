/** Domains that are reserved for examples: mail to them reaches no one (RFC 2606). */
export const DOMAINS = `example.com example.org example.net larkspur.example fernhill-dental.example
  kuro-cycles.example saltmarsh.example`.split(/\s+/);

export const CONTACT_GROUPS = ['Customers', 'Newsletter', 'Wholesale', 'Partners', 'VIP ⭐', 'Événements'];

export const CONTACT_DESCRIPTIONS = [
  'Prefers to be called in the afternoon.',
  'Met at the spring fair; wants a quote for 200 pieces.',
  'Schreibt lieber auf Deutsch. Größe „M“ merken!',
  'Demande toujours une facture détaillée.',
  'Long-standing customer since the first shop 🎉',
  'Vegetarian 🌱, brings a guide dog 🦮.',
  'العميل يفضل التواصل بالعربية',
  '請用繁體中文回覆。',
  'Line one of a note.\nLine two, with "quotes", a \\ and a tab\there.',
];

export const LANGUAGES = 'en de fr es pl tr uk el ar he hi ja zh ko'.split(' ');
export const SEGMENTS = ['free', 'team', 'business'];
export const CITIES = 'Bristol München Lyon Kraków İzmir Київ Αθήνα 東京 서울 Recife'.split(' ');

/** `#` stands for a number of the conversation. */
export const SUBJECTS = [
  'Where is order #?',
  'Re: Invoice # is missing the VAT number',
  'Can I change the delivery address for #?',
  'Thank you 💛',
  'Rückfrage zur Bestellung #',
  'Größe getauscht – wie geht es weiter?',
  'Problème de connexion à mon compte',
  '¿Cuándo llega el pedido #?',
  'Reklamacja zamówienia #',
  'Питання щодо рахунку #',
  'استفسار عن الطلب #',
  'שאלה לגבי הזמנה #',
  'ご注文 # について',
  '关于订单 # 的退款',
  '배송 문의 #',
  'Fwd: Quote # for 200 pieces <urgent>',
  'Feature request: dark mode 🌙',
  'Unable to reset my password',
  'Booking # – late arrival & parking',
  'Question about "annual" plan',
];

export const EXCERPTS = [
  'Hello, I ordered last week and have not heard anything since.',
  'Could you please send me a corrected invoice? Many thanks!',
  'Vielen Dank für die schnelle Antwort, das Paket ist da.',
  'Merci beaucoup, tout fonctionne maintenant 😊',
  'Muchas gracias por su ayuda.',
  'شكراً جزيلاً على المساعدة',
  'お返事お待ちしております。',
  'It still says "error 42" after I click on <Save>.',
];
