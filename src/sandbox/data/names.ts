import type { Random } from './random.ts';

/** A person's name as it is written, and the Latin letters that an address is made of. */
interface PersonName {
  name: string;
  latin: string;
}

/**
 * Two lines a culture, in the order in which its names are written; with `~` no blank stands between them. A word that
 * is not plain Latin is `written|latin`.
 */
const CULTURES = `
given  Olivia Amelia George Harriet Theodore Imogen Callum Beatrice Declan Nora
family Whitaker Ashdown Pemberton Hughes O'Connell|oconnell Fairbanks Okafor Lindqvist
given  Jürgen|juergen Anneliese Matthias Käthe|kaethe Lukas Friederike Jörg|joerg Heike
family Müller|mueller Groß|gross Schönfeld|schoenfeld Köhler|koehler Becker Winterfeld
given  Chloé|chloe Zoë|zoe François|francois Éloïse|eloise Benoît|benoit Margaux Gaël|gael
family Lefèvre|lefevre Dubois D’Arcy|darcy Beauséjour|beausejour Garnier Moreau
given  Sofía|sofia José|jose Begoña|begona Íñigo|inigo Lucía|lucia Mateo João|joao Inês|ines
family Ibáñez|ibanez Muñoz|munoz Gonçalves|goncalves Peña|pena Araújo|araujo Castillo
given  Małgorzata|malgorzata Łukasz|lukasz Tomáš|tomas Zdeňka|zdenka Grzegorz Eliška|eliska
family Wójcik|wojcik Dvořák|dvorak Zieliński|zielinski Šťastný|stastny Kowalczyk Říha|riha
given  Ayşe|ayse Çağla|cagla Ömer|omer İbrahim|ibrahim Gülşen|gulsen Barış|baris
family Yıldız|yildiz Öztürk|ozturk Şahin|sahin Güneş|gunes Aydın|aydin
given  Олена|olena Дмитро|dmytro Наталія|natalia Георги|georgi Светлана|svetlana Тарас|taras
family Шевченко|shevchenko Коваленко|kovalenko Иванов|ivanov Бойко|boyko Димитров|dimitrov
given  Ελένη|eleni Γιώργος|giorgos Κατερίνα|katerina Νίκος|nikos Δέσποινα|despina
family Παπαδοπούλου|papadopoulou Γεωργίου|georgiou Νικολαΐδης|nikolaidis Βλάχος|vlachos
given  فاطمة|fatima يوسف|yusuf ليلى|layla أحمد|ahmad نور|nour خالد|khalid
family الحسن|alhassan المصري|almasri حداد|haddad الزهراني|alzahrani منصور|mansour
given  נועה|noa איתן|eitan תמר|tamar יעל|yael אורי|uri
family כהן|cohen לוי|levi מזרחי|mizrahi פרידמן|friedman
given  अनन्या|ananya रोहन|rohan प्रिया|priya अर्जुन|arjun मीरा|meera
family शर्मा|sharma पटेल|patel अय्यर|iyer सिंह|singh गुप्ता|gupta
family 佐藤|sato 鈴木|suzuki 高橋|takahashi 渡辺|watanabe 小林|kobayashi
given  美咲|misaki 翔太|shota 陽菜|hina 健一|kenichi さくら|sakura
family~ 王|wang 李|li 张|zhang 欧阳|ouyang 陈|chen
given  秀英|xiuying 伟|wei 静怡|jingyi 志强|zhiqiang 雨桐|yutong
family~ 김|kim 이|lee 박|park 최|choi 남궁|namgung
given  서연|seoyeon 민준|minjun 지우|jiwoo 하윤|hayoon 도현|dohyun
family Nguyễn|nguyen Trần|tran Phạm|pham Đặng|dang Võ|vo
given  Thảo|thao Minh Hương|huong Đức|duc Quỳnh|quynh
given  Adébáyò|adebayo Ngozi Chinwe Folaṣadé|folasade Kwame Zanele
family Adéyẹmí|adeyemi Mensah Nwosu Dlamini Ọláńrewájú|olanrewaju
given  สมชาย|somchai พิมพ์ชนก|pimchanok ณัฐพล|nattapon อรทัย|orathai
family ศรีสุข|srisuk วงศ์สวัสดิ์|wongsawat จันทร์เพ็ญ|chanpen
`;

/** Each word as it is written and in Latin letters. */
function wordsIn(line: string): PersonName[] {
  const [, ...words] = line.split(/ +/);
  return words.map((word) => {
    const [name = word, latin = word.toLowerCase()] = word.split('|');
    return { name, latin };
  });
}

const ANY = [...CULTURES.matchAll(/^(.+)\n(.+)$/gm)].map(([both, first = '', second = '']) => {
  const familyFirst = first.startsWith('family');
  const [given, family] = familyFirst ? [second, first] : [first, second];
  const joiner = both.includes('~') ? '' : ' ';
  return { given: wordsIn(given), family: wordsIn(family), familyFirst, joiner };
});

const LATIN = ANY.filter(({ given }) => given.every(({ name }) => /^\p{Script=Latin}+$/u.test(name)));

/**
 * Draws a person's name, out of many cultures.
 *
 * @param script any, or only the one that every machine has a font for
 */
export function personName(random: Random, script: 'any' | 'latin' = 'any'): PersonName {
  const culture = random.pick(script === 'any' ? ANY : LATIN);
  const given = random.pick(culture.given);
  const family = random.pick(culture.family);
  const [first, second] = culture.familyFirst ? [family, given] : [given, family];
  return { name: first.name + culture.joiner + second.name, latin: `${given.latin}.${family.latin}` };
}
