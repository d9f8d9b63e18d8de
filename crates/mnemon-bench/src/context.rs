//! How far the bound lies above the true number of tokens, and how long a context takes.

use std::convert::Infallible;
use std::hint::black_box;

use mnemon_adapters::tokens::counter;
use mnemon_core::Role;
use mnemon_core::budget::{Budget, Family, Form, Material, Section, compile};

use crate::measure::{Table, Times};

const EXACT: [Family; 2] = [Family::O200k, Family::Cl100k];

/// Texts as people write them, and code.
const TEXTS: &[(&str, &str)] = &[
    ("English", ENGLISH),
    (
        "code (Rust)",
        include_str!("../../mnemon-core/src/commit.rs"),
    ),
    ("Markdown", include_str!("../../../ARCHITECTURE.md")),
    ("JSON", JSON),
    ("Vietnamese", VIETNAMESE),
    ("Japanese", JAPANESE),
    ("Chinese", CHINESE),
    ("German", GERMAN),
];

const ENGLISH: &str = "Ann moved to the coast last spring because she wanted to be closer to her \
    sister, who had just opened a small bakery near the harbour. She told me that the rent was \
    higher than expected, but the flat has two rooms and a balcony from which you can see the \
    boats come in. On Mondays she works from home; on other days she takes the early train, reads \
    for half an hour and answers her mail before anybody else is in the office. We agreed that the \
    review of the deployment plan should happen before the end of the month, and that Bob would \
    write down what went wrong during the last release: a migration had been applied twice, the \
    alert came too late, and nobody knew whom to call. She doesn't drink coffee any more, prefers \
    green tea without sugar, and asked whether we could meet somewhere quieter next time.";
const JSON: &str = r#"{"id":"018f3c2e-7a10-7c3d-9b1e-2f4a6d8c0e11","scope":"experience","kind":"step","body":{"tool":"http_request","input":{"url":"https://example.org/v1/items?limit=50","headers":{"accept":"application/json"}},"success":false,"error":"timeout after 30000 ms","latency_ms":30012,"cost":0.0031},"tags":["retry","network"],"created":"2026-01-31T12:00:00.000Z"}"#;
const VIETNAMESE: &str = "Mùa xuân năm ngoái, chị An chuyển ra sống gần biển vì muốn ở gần em \
    gái, người vừa mở một tiệm bánh nhỏ cạnh bến cảng. Chị kể rằng tiền thuê nhà cao hơn dự tính, \
    nhưng căn hộ có hai phòng và một ban công nhìn ra chỗ tàu thuyền cập bến. Thứ hai chị làm việc \
    ở nhà; những ngày khác chị đi chuyến tàu sớm, đọc sách nửa tiếng rồi trả lời thư trước khi mọi \
    người đến văn phòng. Chúng tôi thống nhất rằng việc xem lại kế hoạch triển khai phải xong \
    trước cuối tháng, và anh Bình sẽ ghi lại những lỗi đã xảy ra trong lần phát hành vừa rồi.";
const JAPANESE: &str = "昨年の春、アンさんは港の近くで小さなパン屋を開いたばかりの妹のそばに住みたくて、\
    海辺の町に引っ越しました。家賃は思ったより高かったそうですが、部屋は二つあり、ベランダからは船が入って\
    くるのが見えます。月曜日は家で仕事をし、ほかの日は早い電車に乗って三十分ほど本を読み、みんなが来る前に\
    メールに返事をします。デプロイ計画の見直しは月末までに終わらせること、前回のリリースで何が起きたかを\
    ボブさんが書いておくことに決めました。彼女はもうコーヒーを飲まず、砂糖なしの緑茶が好きです。";
const CHINESE: &str = "去年春天，安搬到了海边，因为她想离妹妹近一些，妹妹刚在港口附近开了一家小面包店。\
    她说房租比预想的要高，但是公寓有两个房间，还有一个可以看到船只进港的阳台。星期一她在家工作，其他日子\
    坐早班火车，读半小时书，在别人到办公室之前回复邮件。我们商定月底之前完成部署计划的检查。";
const GERMAN: &str = "Im letzten Frühjahr ist Anna an die Küste gezogen, weil sie näher bei ihrer \
    Schwester sein wollte, die gerade eine kleine Bäckerei am Hafen eröffnet hatte. Die Miete sei \
    höher als erwartet, sagte sie, aber die Wohnung habe zwei Zimmer und einen Balkon, von dem aus \
    man die Boote einlaufen sieht. Wir haben vereinbart, dass der Bereitstellungsplan noch vor \
    Monatsende überprüft wird.";

pub(crate) fn run(sizes: &[usize]) -> Result<(), Box<dyn std::error::Error>> {
    bound();
    println!();
    speed(sizes)
}

/// Tokens by the bound for each true one.
fn bound() {
    let counters = EXACT.map(counter);
    let any = counter(Family::Any);
    println!("| bound / exact | o200k | cl100k | bytes/o200k |");
    println!("|---|---|---|---|");
    for (name, text) in TEXTS {
        let most = any.count(text) as f64;
        let exact = counters
            .each_ref()
            .map(|counter| counter.count(text) as f64);
        let ratios = exact.map(|exact| format!("{:.2}", most / exact));
        let bytes = text.len() as f64 / exact[0];
        println!("| {name} | {} | {bytes:.2} |", ratios.join(" | "));
    }
}

/// So many materials, of which none says what another does.
fn materials(count: usize) -> Vec<Material> {
    let words: Vec<&str> = ENGLISH.split_whitespace().collect();
    let material = |n: usize| {
        let section = Section::ALL.get(n % Section::ALL.len());
        let word = |k: usize| words.get((n * 31 + k * (7 + n % 5)) % words.len());
        let text: Vec<&str> = (0..20 + n % 60).filter_map(word).copied().collect();
        let section = section.copied().unwrap_or(Section::Facts);
        let id = format!("018f3c2e-7a10-7c3d-9b1e-{n:012x}").parse();
        let id = id.unwrap_or_else(|_| unreachable!("a hexadecimal number is an id"));
        Material {
            value: 1.0 - (n % 997) as f64 / 1000.0,
            order: i64::try_from(n).unwrap_or_default(),
            role: Some(Role::User),
            ..Material::new(section, id, format!("{n}: {}.", text.join(" ")))
        }
    };
    (0..count).map(material).collect()
}

fn speed(sizes: &[usize]) -> Result<(), Box<dyn std::error::Error>> {
    let mut table = Table::new(sizes);
    for size in sizes {
        let materials = materials(*size);
        for family in [Family::Any, Family::O200k] {
            let counter = counter(family);
            counter.count("the vocabulary is read once");
            let count = || {
                materials
                    .iter()
                    .map(|m| counter.count(&m.text))
                    .sum::<usize>()
            };
            let total = count();
            let floor = median(|| {
                black_box(count());
            });
            table.add(
                &format!("{family}: count every text, ms (the floor)"),
                floor,
            );
            for form in Form::ALL {
                for (name, tokens) in [("4k tokens", 4000), ("room for all", 3 * total)] {
                    let budget = Budget::of(tokens.min(2_000_000));
                    let time = median(|| {
                        black_box(compile(&materials, &budget, *form, counter.as_ref()).is_ok());
                    });
                    table.add(&format!("{family}: {form}, {name}, ms"), time);
                }
            }
        }
    }
    table.print();
    Ok(())
}

fn median(mut call: impl FnMut()) -> f64 {
    let times = Times::of(5, |_| {
        call();
        Ok::<(), Infallible>(())
    });
    let Ok(times) = times;
    times.percentile(0.5) / 1000.0
}
