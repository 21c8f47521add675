//! Tools with options and defaults, and a function that helps both.

use larder::{prelude::*, random::Random};

/// A class that a student took.
#[larder::data]
#[derive(Clone)]
struct Class {
    /// The subject.
    title: String,
    /// The grade, from 0 to 100.
    #[schemars(range(min = 0, max = 100))]
    grade: u8,
    /// The teacher's name.
    instructor: String,
    /// The weight of the class.
    credits: u8,
}

/// A report card.
#[larder::output]
struct ReportCard {
    /// The student's name.
    name: String,
    /// All classes.
    grades: Vec<Class>,
    /// The mean of the grades, weighted by credits.
    weighted_gpa: f64,
    /// The unweighted mean of the grades.
    unweighted_gpa: f64,
}

/// Creates a student's report card from the given classes, or from random ones.
#[tool(title = "Generate Report Card")]
fn grader_generate_report_card(
    ctx: &Context<Random>,
    /** The student's name. */
    name: String,
    /** The student's classes. Default: random ones. */
    classes: Option<Vec<Class>>,
) -> Result<ReportCard> {
    let grades = classes.filter(|classes| !classes.is_empty());
    let grades = grades.unwrap_or_else(|| random_classes(ctx.state()));
    let (weighted_gpa, unweighted_gpa) = (mean(&grades, true)?, mean(&grades, false)?);
    Ok(ReportCard { name, grades, weighted_gpa, unweighted_gpa })
}

/// Calculates the mean of the grades, weighted by credits or not.
#[tool(title = "Calculate GPA", annotations(read_only))]
fn grader_calculate_gpa(
    /** The classes. */
    classes: Vec<Class>,
    /** Whether to weight by credits. */
    #[arg(default = true)]
    weighted: bool,
) -> Result<Json<f64>> {
    mean(&classes, weighted).map(Json)
}

/// A helper of both tools.
fn mean(classes: &[Class], weighted: bool) -> Result<f64> {
    let weight = |class: &Class| if weighted { f64::from(class.credits) } else { 1.0 };
    let total: f64 = classes.iter().map(weight).sum();
    if total == 0.0 {
        return Err(ToolError::new(if classes.is_empty() {
            "There are no classes, so there is no mean: give at least one."
        } else {
            "No class has credits, so there is no weighted mean: set weighted to false."
        }));
    }
    let sum: f64 = classes.iter().map(|class| f64::from(class.grade) * weight(class)).sum();
    Ok(sum / total)
}

fn random_classes(random: &Random) -> Vec<Class> {
    let up_to = |max: u8| -> u8 {
        let digits = random.id();
        let number = u64::from_str_radix(digits.get(..8).unwrap_or("0"), 16).unwrap_or(0);
        u8::try_from(number % (u64::from(max) + 1)).unwrap_or(0)
    };
    [("Math", "Mr. Smith"), ("Science", "Mrs. Johnson"), ("History", "Mr. Brown")]
        .map(|(title, instructor)| Class {
            title: title.into(),
            grade: up_to(100),
            instructor: instructor.into(),
            credits: 1 + up_to(3),
        })
        .into()
}

fn main() -> ExitCode {
    larder::server("full-tool-server")
        .state(Random::system())
        .tool(grader_generate_report_card)
        .tool(grader_calculate_gpa)
        .run()
}
