//! Tools that return structs and images, and a tool that does a whole job.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::serving;

#[tokio::test]
async fn a_struct_becomes_structured_content_with_a_schema() {
    let (_example, client) = serving("report_card").await;
    let tools = client.list("tools/list", "tools").await;
    let pair = &tools[0]["outputSchema"]["properties"]["grades"]["items"];
    assert_eq!(pair["prefixItems"], json!([{ "type": "string" }, { "type": "integer" }]));
    assert_eq!((&pair["minItems"], &pair["maxItems"]), (&json!(2), &json!(2)));
    assert!(tools[1].get("outputSchema").is_none(), "an image has no structure");

    let card = json!({ "name": "Ana", "grades": [["Math", 90], ["History", 75]] });
    let answer = client.call("generate_report_card", card.clone()).await;
    assert_eq!(answer.result()["structuredContent"], card);
    assert_eq!(serde_json::from_str::<Value>(&answer.text()).unwrap(), card);
    let wrong = json!({ "name": "Ana", "grades": [["Math", "A"]] });
    assert!(client.call("generate_report_card", wrong).await.failure().contains("grades.0.1"));
}

#[tokio::test]
async fn an_image_is_a_file_of_its_type() {
    let (_example, client) = serving("report_card").await;
    let card = json!({ "report_card": { "name": "Ana", "grades": [["Math", 90]] } });
    let result = client.call("generate_report_card_image", card).await.result();
    let image = &result["content"][0];
    assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/png")));
    let file = BASE64_STANDARD.decode(image["data"].as_str().unwrap()).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (400, 200));
    // A bar of 90 of 100: white above, ink below.
    assert_eq!((pixels[0], pixels[30 * 400]), (0xff, 0x20));
}

fn class(title: &str, grade: u8, credits: u8) -> Value {
    json!({ "title": title, "grade": grade, "instructor": "X", "credits": credits })
}

#[tokio::test]
async fn one_call_does_the_whole_job() {
    let (_example, client) = serving("grader").await;
    let tools = client.list("tools/list", "tools").await;
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["grader_generate_report_card", "grader_calculate_gpa"]);
    assert_eq!(tools[0]["title"], "Generate Report Card");
    assert!(tools[0]["outputSchema"]["properties"]["weighted_gpa"].is_object());

    let classes = json!([class("Math", 90, 3), class("History", 80, 1)]);
    let arguments = json!({ "name": "Ana", "classes": classes });
    let card = client.call("grader_generate_report_card", arguments).await.result();
    let card = &card["structuredContent"];
    assert_eq!(card["grades"], classes);
    assert_eq!((&card["weighted_gpa"], &card["unweighted_gpa"]), (&json!(87.5), &json!(85.0)));
}

#[tokio::test]
async fn missing_classes_are_generated() {
    let (_example, client) = serving("grader").await;
    let card = client.call("grader_generate_report_card", json!({ "name": "Ben" })).await;
    let card = card.result()["structuredContent"].clone();
    let classes = card["grades"].as_array().unwrap();
    let titles: Vec<_> = classes.iter().map(|class| class["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Math", "Science", "History"]);
    let (mut sum, mut weighted, mut credits) = (0.0, 0.0, 0.0);
    for class in classes {
        let [grade, credit] = ["grade", "credits"].map(|key| class[key].as_f64().unwrap());
        assert!((0.0..=100.0).contains(&grade) && (1.0..=4.0).contains(&credit), "{class}");
        sum += grade;
        weighted += grade * credit;
        credits += credit;
    }
    let near = |key: &str, expected: f64| (card[key].as_f64().unwrap() - expected).abs() < 1e-9;
    assert!(near("unweighted_gpa", sum / 3.0) && near("weighted_gpa", weighted / credits));
}

#[tokio::test]
async fn a_mean_is_plain_text_and_no_classes_have_none() {
    let (_example, client) = serving("grader").await;
    let tools = client.list("tools/list", "tools").await;
    let tool = tools.iter().find(|tool| tool["name"] == "grader_calculate_gpa").unwrap();
    assert_eq!(tool["title"], "Calculate GPA");
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
    assert!(tool.get("outputSchema").is_none());

    let classes = json!([class("Math", 90, 3), class("History", 80, 1)]);
    let answer = client.call("grader_calculate_gpa", json!({ "classes": classes })).await;
    assert_eq!(answer.text(), "87.5");
    assert!(answer.result().get("structuredContent").is_none());
    let plain = json!({ "classes": classes, "weighted": false });
    assert_eq!(client.call("grader_calculate_gpa", plain).await.text(), "85.0");

    for classes in [json!([]), json!([class("Math", 90, 0)])] {
        let refused = client.call("grader_calculate_gpa", json!({ "classes": classes })).await;
        assert!(refused.failure().contains("no"), "{refused:?}");
    }
    let free = json!({ "classes": [class("Math", 90, 0)], "weighted": false });
    assert_eq!(client.call("grader_calculate_gpa", free).await.text(), "90.0");
}
