//! Tools with options and defaults, and a function that is both a tool and a
//! helper of another tool.

use larder::{Context, Registry, Structured, Tool, ToolError, random::Random};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A class that a student took.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Serialize, JsonSchema)]
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
#[derive(Deserialize, JsonSchema)]
struct GraderGenerateReportCard {
    /// The student's name.
    name: String,
    /// The student's classes. Default: random ones.
    #[serde(default)]
    classes: Option<Vec<Class>>,
}

/// Calculates the mean of the grades, weighted by credits or not.
#[derive(Deserialize, JsonSchema)]
struct GraderCalculateGpa {
    /// The classes.
    classes: Vec<Class>,
    /// Whether to weight by credits. Default: true.
    #[serde(default = "yes")]
    weighted: bool,
}

fn yes() -> bool {
    true
}

async fn generate(
    ctx: Context<Random>,
    args: GraderGenerateReportCard,
) -> Result<Structured<ReportCard>, ToolError> {
    let classes = args.classes.filter(|classes| !classes.is_empty());
    let classes = classes.unwrap_or_else(|| random_classes(ctx.state()));
    let gpa = |weighted| gpa(&GraderCalculateGpa { classes: classes.clone(), weighted });
    let (weighted_gpa, unweighted_gpa) = (gpa(true)?, gpa(false)?);
    Ok(Structured(ReportCard { name: args.name, grades: classes, weighted_gpa, unweighted_gpa }))
}

/// A plain function. `main` also registers it as a tool.
fn gpa(args: &GraderCalculateGpa) -> Result<f64, ToolError> {
    let weight = |class: &Class| if args.weighted { f64::from(class.credits) } else { 1.0 };
    let total: f64 = args.classes.iter().map(weight).sum();
    if total == 0.0 {
        return Err(ToolError::new(if args.classes.is_empty() {
            "There are no classes, so there is no mean: give at least one."
        } else {
            "No class has credits, so there is no weighted mean: set weighted to false."
        }));
    }
    let sum: f64 = args.classes.iter().map(|class| f64::from(class.grade) * weight(class)).sum();
    Ok(sum / total)
}

/// Not a tool, because it is not registered.
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

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        let calculate = |_: Context<Random>, args: GraderCalculateGpa| async move {
            gpa(&args).map(Structured)
        };
        Registry::builder("full-tool-server")
            .state(Random::system())
            .tool(Tool::new(generate).title("Generate Report Card"))
            .tool(
                Tool::new(calculate)
                    .title("Calculate GPA")
                    .annotations(ToolAnnotations::new().read_only(true))
                    .structured_output(false),
            )
            .build()
    })
}
