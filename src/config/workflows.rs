//! The positions of workflows in the configuration file, for error messages.

use std::{collections::HashMap, path::Path};

use larder_server::workflow::Problem;
use serde::Deserialize;
use toml::Spanned;

/// The lines at which workflows and their steps begin.
#[derive(Debug, Clone, Default)]
pub struct WorkflowLocations {
    file: String,
    lines: HashMap<(String, Option<String>), usize>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    workflows: Vec<Workflow>,
}

#[derive(Deserialize)]
struct Workflow {
    name: Spanned<String>,
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    name: Spanned<String>,
}

impl WorkflowLocations {
    /// Scans the file. A file that cannot be read has no locations: loading it reports the
    /// error.
    pub fn read(path: &Path) -> Self {
        let Ok(text) = std::fs::read_to_string(path) else { return Self::default() };
        let Ok(file) = toml::from_str::<File>(&text) else { return Self::default() };

        let line = |name: &Spanned<String>| 1 + text[..name.span().start].matches('\n').count();
        let mut lines = HashMap::new();
        for workflow in &file.workflows {
            let name = workflow.name.get_ref();
            lines.insert((name.clone(), None), line(&workflow.name));
            for step in &workflow.steps {
                let key = (name.clone(), Some(step.name.get_ref().clone()));
                lines.insert(key, line(&step.name));
            }
        }

        Self { file: path.display().to_string(), lines }
    }

    /// The problem with its position in the file.
    pub fn show(&self, problem: &Problem) -> String {
        let key = (problem.workflow.clone(), problem.step.clone());
        let workflow = (problem.workflow.clone(), None);
        match self.lines.get(&key).or_else(|| self.lines.get(&workflow)) {
            Some(line) => format!("{}:{line}: {problem}", self.file),
            None => problem.to_string(),
        }
    }
}
