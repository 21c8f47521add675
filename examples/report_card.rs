//! Tools that return a struct and an image. The struct's type gives the output
//! schema; the image is a complete PNG file.

use larder::prelude::*;

/// A report card.
#[larder::data]
struct ReportCard {
    /// The student's name.
    name: String,
    /// The classes and their grades, from 0 to 100.
    grades: Vec<(String, i64)>,
}

const WIDTH: usize = 400;
const HEIGHT: usize = 200;
const WHITE: u8 = 0xff;
const INK: u8 = 0x20;

/// Creates a student's report card.
#[tool]
fn generate_report_card(
    /** The student's name. */
    name: String,
    /** The classes and their grades. */
    grades: Vec<(String, i64)>,
) -> ReportCard {
    ReportCard { name, grades }
}

/// Draws a report card as a bar chart.
#[tool]
fn generate_report_card_image(
    /** The card to draw. */
    report_card: ReportCard,
) -> Result<Image> {
    // A host needs a complete file of the declared format, not raw pixels.
    let png = encode(&draw(&report_card)).context("The report card could not be drawn.")?;
    Ok(Image::png(png))
}

fn draw(card: &ReportCard) -> Vec<u8> {
    let mut pixels = vec![WHITE; WIDTH * HEIGHT];
    let slot = WIDTH / card.grades.len().max(1);
    for (index, (_, grade)) in card.grades.iter().enumerate().take(WIDTH) {
        let grade = usize::try_from((*grade).clamp(0, 100)).unwrap_or(0);
        let top = HEIGHT - grade * HEIGHT / 100;
        for row in top..HEIGHT {
            let start = row * WIDTH + index * slot;
            // A bar is half as wide as its slot.
            pixels[start..start + slot.div_ceil(2)].fill(INK);
        }
    }
    pixels
}

fn encode(pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let (width, height) = (400, 200);
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(file)
}

fn main() -> ExitCode {
    larder::server("structured-output-server")
        .tool(generate_report_card)
        .tool(generate_report_card_image)
        .run()
}
