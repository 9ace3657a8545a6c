import { innerBytes, type JsonBytes } from './json-bytes.ts';
import type { Random } from './random.ts';

/** A person's name as it is written, and the Latin letters that an address is made of. */
export interface PersonName {
  name: string;
  latin: string;
}

interface Culture {
  given: readonly string[];
  family: readonly string[];
  familyFirst?: true;
  /** What stands between the two names; a space when left out. */
  joiner?: string;
}

/** Names as written; where the script is not plain Latin, `written|latin`. */
const CULTURES: readonly Culture[] = [
  {
    given: [
      'Olivia',
      'Amelia',
      'George',
      'Harriet',
      'Theodore',
      'Imogen',
      'Callum',
      'Beatrice',
      'Declan',
      'Nora',
    ],
    family: [
      'Whitaker',
      'Ashdown',
      'Pemberton',
      'Hughes',
      "O'Connell|oconnell",
      'Fairbanks',
      'Okafor',
      'Lindqvist',
    ],
  },
  {
    given: [
      'Jürgen|juergen',
      'Anneliese',
      'Matthias',
      'Käthe|kaethe',
      'Lukas',
      'Friederike',
      'Jörg|joerg',
      'Heike',
    ],
    family: [
      'Müller|mueller',
      'Groß|gross',
      'Schönfeld|schoenfeld',
      'Köhler|koehler',
      'Becker',
      'Winterfeld',
    ],
  },
  {
    given: [
      'Chloé|chloe',
      'Zoë|zoe',
      'François|francois',
      'Éloïse|eloise',
      'Benoît|benoit',
      'Margaux',
      'Gaël|gael',
    ],
    family: ['Lefèvre|lefevre', 'Dubois', 'D’Arcy|darcy', 'Beauséjour|beausejour', 'Garnier', 'Moreau'],
  },
  {
    given: [
      'Sofía|sofia',
      'José|jose',
      'Begoña|begona',
      'Íñigo|inigo',
      'Lucía|lucia',
      'Mateo',
      'João|joao',
      'Inês|ines',
    ],
    family: ['Ibáñez|ibanez', 'Muñoz|munoz', 'Gonçalves|goncalves', 'Peña|pena', 'Araújo|araujo', 'Castillo'],
  },
  {
    given: [
      'Małgorzata|malgorzata',
      'Łukasz|lukasz',
      'Tomáš|tomas',
      'Zdeňka|zdenka',
      'Grzegorz',
      'Eliška|eliska',
    ],
    family: [
      'Wójcik|wojcik',
      'Dvořák|dvorak',
      'Zieliński|zielinski',
      'Šťastný|stastny',
      'Kowalczyk',
      'Říha|riha',
    ],
  },
  {
    given: ['Ayşe|ayse', 'Çağla|cagla', 'Ömer|omer', 'İbrahim|ibrahim', 'Gülşen|gulsen', 'Barış|baris'],
    family: ['Yıldız|yildiz', 'Öztürk|ozturk', 'Şahin|sahin', 'Güneş|gunes', 'Aydın|aydin'],
  },
  {
    given: [
      'Олена|olena',
      'Дмитро|dmytro',
      'Наталія|natalia',
      'Георги|georgi',
      'Светлана|svetlana',
      'Тарас|taras',
    ],
    family: [
      'Шевченко|shevchenko',
      'Коваленко|kovalenko',
      'Иванов|ivanov',
      'Бойко|boyko',
      'Димитров|dimitrov',
    ],
  },
  {
    given: ['Ελένη|eleni', 'Γιώργος|giorgos', 'Κατερίνα|katerina', 'Νίκος|nikos', 'Δέσποινα|despina'],
    family: ['Παπαδοπούλου|papadopoulou', 'Γεωργίου|georgiou', 'Νικολαΐδης|nikolaidis', 'Βλάχος|vlachos'],
  },
  {
    given: ['فاطمة|fatima', 'يوسف|yusuf', 'ليلى|layla', 'أحمد|ahmad', 'نور|nour', 'خالد|khalid'],
    family: ['الحسن|alhassan', 'المصري|almasri', 'حداد|haddad', 'الزهراني|alzahrani', 'منصور|mansour'],
  },
  {
    given: ['נועה|noa', 'איתן|eitan', 'תמר|tamar', 'יעל|yael', 'אורי|uri'],
    family: ['כהן|cohen', 'לוי|levi', 'מזרחי|mizrahi', 'פרידמן|friedman'],
  },
  {
    given: ['अनन्या|ananya', 'रोहन|rohan', 'प्रिया|priya', 'अर्जुन|arjun', 'मीरा|meera'],
    family: ['शर्मा|sharma', 'पटेल|patel', 'अय्यर|iyer', 'सिंह|singh', 'गुप्ता|gupta'],
  },
  {
    given: ['美咲|misaki', '翔太|shota', '陽菜|hina', '健一|kenichi', 'さくら|sakura'],
    family: ['佐藤|sato', '鈴木|suzuki', '高橋|takahashi', '渡辺|watanabe', '小林|kobayashi'],
    familyFirst: true,
  },
  {
    given: ['秀英|xiuying', '伟|wei', '静怡|jingyi', '志强|zhiqiang', '雨桐|yutong'],
    family: ['王|wang', '李|li', '张|zhang', '欧阳|ouyang', '陈|chen'],
    familyFirst: true,
    joiner: '',
  },
  {
    given: ['서연|seoyeon', '민준|minjun', '지우|jiwoo', '하윤|hayoon', '도현|dohyun'],
    family: ['김|kim', '이|lee', '박|park', '최|choi', '남궁|namgung'],
    familyFirst: true,
    joiner: '',
  },
  {
    given: ['Thảo|thao', 'Minh', 'Hương|huong', 'Đức|duc', 'Quỳnh|quynh'],
    family: ['Nguyễn|nguyen', 'Trần|tran', 'Phạm|pham', 'Đặng|dang', 'Võ|vo'],
    familyFirst: true,
  },
  {
    given: ['Adébáyò|adebayo', 'Ngozi', 'Chinwe', 'Folaṣadé|folasade', 'Kwame', 'Zanele'],
    family: ['Adéyẹmí|adeyemi', 'Mensah', 'Nwosu', 'Dlamini', 'Ọláńrewájú|olanrewaju'],
  },
  {
    given: ['สมชาย|somchai', 'พิมพ์ชนก|pimchanok', 'ณัฐพล|nattapon', 'อรทัย|orathai'],
    family: ['ศรีสุข|srisuk', 'วงศ์สวัสดิ์|wongsawat', 'จันทร์เพ็ญ|chanpen'],
  },
];

interface Word {
  written: string;
  latin: string;
  /** As written, in JSON. */
  json: JsonBytes;
}

/** A person, drawn by lot. */
export interface Person {
  given: Word;
  family: Word;
  familyFirst: boolean;
  joiner: { written: string; json: JsonBytes };
}

function word(entry: string): Word {
  const [written = entry, latin = entry.toLowerCase()] = entry.split('|');
  return { written, latin, json: innerBytes(written) };
}

const PREPARED = CULTURES.map(({ given, family, familyFirst = false, joiner = ' ' }) => ({
  given: given.map(word),
  family: family.map(word),
  familyFirst,
  joiner: { written: joiner, json: innerBytes(joiner) },
}));

const LATIN = PREPARED.filter(({ given }) =>
  given.every(({ written }) => /^\p{Script=Latin}+$/u.test(written)),
);

/**
 * Draws a person, out of many cultures.
 *
 * @param script any, or only the one that every machine has a font for
 */
export function drawPerson(random: Random, script: 'any' | 'latin' = 'any'): Person {
  const { given, family, familyFirst, joiner } = random.pick(script === 'any' ? PREPARED : LATIN);
  return { given: random.pick(given), family: random.pick(family), familyFirst, joiner };
}

/** The name in the order and the script of its culture. */
export function writtenName({ given, family, familyFirst, joiner }: Person): string {
  const [first, second] = familyFirst ? [family, given] : [given, family];
  return first.written + joiner.written + second.written;
}

/** The same, as it stands in JSON. */
export function nameBytes({ given, family, familyFirst, joiner }: Person): JsonBytes {
  return familyFirst ? family.json + joiner.json + given.json : given.json + joiner.json + family.json;
}

/** What an address is made of. */
export function latinOf({ given, family }: Person): string {
  return `${given.latin}.${family.latin}`;
}

/** A person's name; see {@link drawPerson}. */
export function personName(random: Random, script: 'any' | 'latin' = 'any'): PersonName {
  const person = drawPerson(random, script);
  return { name: writtenName(person), latin: latinOf(person) };
}
