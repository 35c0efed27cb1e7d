//! What a session has used and cost so far: a sum over its steps, kept up event by event.

use std::collections::HashMap;

use crate::core::event::EventView;
use crate::core::json::write_string;
use crate::core::time::Millis;

use super::arithmetic::{write_count, write_scaled};
use super::doc::{Doc, Json};
use super::prices::PriceTable;
use super::pricing::{Cost, Record};
use super::usage::Usage;

/// Where the figure of a step comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pricing {
    /// The price noted when the step was stored; the table only where there is no note.
    Stored,
    /// The table, for every step: a question asked beside the history, which stays as it is.
    Reprice,
}

/// Sums over a set of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Steps, with usage or without.
    pub steps: u64,
    /// Steps whose cost is not known.
    pub unpriced_steps: u64,
    /// Steps whose cost is only a lower bound.
    pub partly_priced_steps: u64,
    /// Counts of all of them.
    pub usage: Usage,
    /// Picodollars of those that are priced.
    pub pico: i128,
}

impl Totals {
    /// Returns the sum as a cost.
    pub fn cost(&self) -> Cost {
        Cost::sum(self.pico, self.unpriced_steps == 0 && self.partly_priced_steps == 0)
    }

    /// Counts a part, or takes it away again.
    #[inline(never)]
    fn change(&mut self, part: &Part, is_new: bool) {
        let change = |count: &mut u64| *count = if is_new { *count + 1 } else { count.saturating_sub(1) };
        match part.pico {
            Some(pico) => {
                self.pico = self.pico.saturating_add(if is_new { pico } else { -pico });
                if !part.complete {
                    change(&mut self.partly_priced_steps);
                }
            }
            None => change(&mut self.unpriced_steps),
        }
        if is_new { self.usage.add(&part.usage) } else { self.usage.subtract(&part.usage) }
    }
}

/// What one step contributes.
#[derive(Clone, Debug, Default)]
struct Part {
    usage: Usage,
    pico: Option<i128>,
    complete: bool,
    /// Whether a record is behind it; a step without usage contributes an unpriced zero.
    recorded: bool,
    model: Option<Box<str>>,
    response: Option<Box<str>>,
    /// Number of forks before it.
    epoch: u32,
    /// The response that was counted here is counted elsewhere: the step itself adds nothing.
    elsewhere: bool,
}

/// The projection's state. Pushing an event costs the same whatever the length of the log.
#[derive(Clone, Debug)]
pub struct UsageState {
    pricing: Pricing,
    all: Totals,
    own: Totals,
    epoch: u32,
    parts: Vec<Part>,
    /// Where a step or a response is counted: `turn/step`, or `=` and the id. One map, because each kind costs code.
    places: HashMap<String, usize>,
    unpriced: Vec<(Box<str>, u64)>,
    started: Option<Started>,
    events: u64,
}

/// The provider and model of the step that is running, for records that name none.
#[derive(Clone, Debug)]
struct Started {
    step: (i64, i64),
    provider: Option<String>,
    model: Option<String>,
}

/// What [`UsageState::note`] knows beside the payload.
#[derive(Clone, Copy, Default)]
struct Hint<'a> {
    provider: Option<&'a str>,
    model: Option<&'a str>,
}

impl UsageState {
    /// Starts before the first event.
    pub fn new(pricing: Pricing) -> Self {
        UsageState {
            pricing,
            all: Totals::default(),
            own: Totals::default(),
            epoch: 0,
            parts: Vec::new(),
            places: HashMap::new(),
            unpriced: Vec::new(),
            started: None,
            events: 0,
        }
    }

    /// Returns how many events were pushed.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the sums over everything.
    pub fn totals(&self) -> &Totals {
        &self.all
    }

    /// Returns the sums since the last fork.
    pub fn own(&self) -> &Totals {
        &self.own
    }

    /// Returns the models whose steps could not be priced, in the order in which they came up.
    pub fn unpriced_models(&self) -> impl Iterator<Item = &str> {
        self.unpriced.iter().filter(|(_, steps)| *steps > 0).map(|(model, _)| &**model)
    }

    /// Takes in the next event.
    pub fn push(&mut self, event: EventView, table: &PriceTable) {
        self.events += 1;
        match event.kind {
            "step/start" => self.start(event.data),
            "session/forked" => {
                self.epoch += 1;
                self.own = Totals::default();
            }
            "step/end" | "usage" => self.step(event, table),
            _ => {}
        }
    }

    fn start(&mut self, data: &str) {
        let Ok(doc) = Doc::parse(data) else { return };
        let text = |key| doc.root().text_of(key).map(Into::into);
        self.started =
            step_of(doc.root()).map(|step| Started { step, provider: text("provider"), model: text("model") });
    }

    fn hint(&self, data: Json) -> Hint<'_> {
        let started = self.started.as_ref().filter(|s| step_of(data) == Some(s.step));
        let Some(started) = started else { return Hint::default() };
        Hint { provider: started.provider.as_deref(), model: started.model.as_deref() }
    }

    fn step(&mut self, event: EventView, table: &PriceTable) {
        let Ok(doc) = Doc::parse(event.data) else { return };
        let is_end = event.kind == "step/end";
        let key = step_of(doc.root());
        let record = record_of(doc.root(), is_end);
        if !is_end && record.is_none() {
            return;
        }
        let part = match record {
            Some(record) => self.part(record, event, doc.root(), table),
            None => Part { epoch: self.epoch, ..Part::default() },
        };
        self.put(key, part);
    }

    fn part<'a>(&'a self, mut record: Record<'a>, event: EventView, data: Json, table: &PriceTable) -> Part {
        fill(&mut record, self.hint(data));
        let note = event.note.filter(|_| self.pricing == Pricing::Stored).and_then(|note| Doc::parse(note).ok());
        let noted = note
            .as_ref()
            .and_then(|n| n.root().get("cost").map(|cost| (n.root().get("usage").map(Usage::read), Cost::read(cost))));
        let (usage, cost) = noted.unwrap_or_else(|| {
            let (reading, cost) = record.price(table, Some(event.at));
            (reading.usage, cost)
        });
        Part {
            usage: usage.unwrap_or_default(),
            pico: cost.pico,
            complete: cost.complete,
            recorded: true,
            model: record.model.map(Into::into),
            response: record.response_id().map(Into::into),
            epoch: self.epoch,
            elsewhere: false,
        }
    }

    /// Counts a part in the place of what it replaces: an earlier report of its response, else of its step.
    fn put(&mut self, key: Option<(i64, i64)>, part: Part) {
        let same_step = key.and_then(|k| self.places.get(&step_key(k)).copied());
        let same_response = part.response.as_ref().and_then(|r| self.places.get(&response_key(r)).copied());
        if same_step.is_none() {
            self.all.steps += 1;
            self.own.steps += 1;
        }
        let Some(at) = same_response.or(same_step) else { return self.insert(key, part) };
        let is_said = part.recorded || !self.parts.get(at).is_some_and(|p| p.recorded);
        if same_response.is_none() && !is_said {
            // A step's end without usage takes nothing away from what was reported before.
            return;
        }
        self.replace(at, part);
        if same_response.is_some() && same_step != Some(at) {
            // This step's own response is counted there; what else was reported for it is replaced, too.
            let covered = Part { elsewhere: true, recorded: true, epoch: self.epoch, ..Part::default() };
            match same_step {
                Some(step) => self.replace(step, covered),
                None => self.insert(key, covered),
            }
        }
    }

    #[inline(never)]
    fn insert(&mut self, key: Option<(i64, i64)>, part: Part) {
        if key.is_none() && part.response.is_none() {
            // Nothing can replace it, so nothing needs to be kept.
            self.count(&part, true);
            return;
        }
        let at = self.parts.len();
        if let Some(key) = key {
            self.places.insert(step_key(key), at);
        }
        self.parts.push(Part { elsewhere: true, ..Part::default() });
        self.replace(at, part);
    }

    #[inline(never)]
    fn replace(&mut self, at: usize, part: Part) {
        self.count(&part, true);
        let Some(old) = self.parts.get_mut(at).map(|slot| std::mem::replace(slot, part)) else { return };
        self.count(&old, false);
        if let Some(gone) = &old.response {
            self.places.remove(&response_key(gone));
        }
        if let Some(response) = self.parts.get(at).and_then(|part| part.response.as_ref()) {
            self.places.insert(response_key(response), at);
        }
    }

    /// Counts a part, or takes it away again.
    #[inline(never)]
    fn count(&mut self, part: &Part, is_new: bool) {
        if part.elsewhere {
            return;
        }
        self.all.change(part, is_new);
        if part.epoch == self.epoch {
            self.own.change(part, is_new);
        }
        if let (None, Some(model)) = (part.pico, &part.model) {
            match self.unpriced.iter_mut().find(|(name, _)| name == model) {
                Some((_, steps)) => *steps = if is_new { *steps + 1 } else { steps.saturating_sub(1) },
                None => self.unpriced.push((model.clone(), 1)),
            }
        }
    }

    /// Prices a payload that is about to be stored, with what the running step's start said: see [`priced_note`].
    pub fn note(&self, kind: &str, data: &str, at: Millis, table: &PriceTable) -> Option<String> {
        let doc = Doc::parse(data).ok()?;
        note_of(kind, doc.root(), at, table, self.hint(doc.root()))
    }

    /// Returns the JSON object of the public interface (`SessionUsage`).
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(700);
        let all = &self.all;
        let number = |out: &mut String, key: &str, n: u64| {
            out.push_str(key);
            write_count(out, n);
        };
        number(&mut out, "{\"steps\":", all.steps);
        number(&mut out, ",\"unpricedSteps\":", all.unpriced_steps);
        out.push_str(",\"unpricedModels\":[");
        for (i, model) in self.unpriced_models().enumerate() {
            out.push_str(if i > 0 { "," } else { "" });
            write_string(&mut out, model);
        }
        number(&mut out, "],\"promptTokens\":", all.usage.input_tokens);
        number(&mut out, ",\"completionTokens\":", all.usage.output_tokens);
        out.push_str(",\"usage\":");
        all.usage.write(&mut out);
        out.push_str(",\"cost\":");
        all.cost().write(&mut out);
        number(&mut out, ",\"own\":{\"steps\":", self.own.steps);
        out.push_str(",\"usage\":");
        self.own.usage.write(&mut out);
        out.push_str(",\"cost\":");
        self.own.cost().write(&mut out);
        out.push_str("}}");
        out
    }
}

fn step_key((turn, step): (i64, i64)) -> String {
    let mut out = String::with_capacity(12);
    write_scaled(&mut out, i128::from(turn), 0);
    out.push('/');
    write_scaled(&mut out, i128::from(step), 0);
    out
}

fn response_key(id: &str) -> String {
    ["=", id].concat()
}

fn step_of(data: Json) -> Option<(i64, i64)> {
    let whole = |key| data.number_of(key).and_then(|n| n.parse().ok());
    Some((whole("turn")?, whole("step")?))
}

/// Finds the record of an event: under `usage`; a step's end may also be one itself.
fn record_of(data: Json<'_>, is_end: bool) -> Option<Record<'_>> {
    if let Some(usage) = data.get("usage").filter(|u| u.is_object()) {
        return Some(Record::read(usage));
    }
    (is_end && data.any(&["raw", "raw_usage"]).is_some()).then(|| Record::read(data))
}

fn fill<'a>(record: &mut Record<'a>, hint: Hint<'a>) {
    // A provider belongs to its model: one that is said goes without the other's hint.
    if record.model.is_none() {
        record.model = hint.model;
        if record.provider.is_none() {
            record.provider = hint.provider;
        }
    } else if record.provider.is_none() && record.model == hint.model {
        record.provider = hint.provider;
    }
}

fn note_of(kind: &str, data: Json, at: Millis, table: &PriceTable, hint: Hint) -> Option<String> {
    let is_end = kind == "step/end";
    if !is_end && kind != "usage" {
        return None;
    }
    let mut record = record_of(data, is_end)?;
    fill(&mut record, hint);
    let (reading, cost) = record.price(table, Some(at));
    let mut out = String::with_capacity(400);
    out.push('{');
    if let Some(usage) = reading.usage {
        out.push_str("\"usage\":");
        usage.write(&mut out);
        out.push(',');
    }
    out.push_str("\"cost\":");
    cost.write(&mut out);
    out.push_str(",\"asOf\":");
    write_string(&mut out, table.as_of());
    out.push('}');
    Some(out)
}

/// Prices a payload that is about to be stored: JSON text `{usage?, cost, asOf}` to keep beside it, so that later prices
/// never rewrite what a step cost. `None` for events that report no usage.
pub fn priced_note(kind: &str, data: &str, at: Millis, table: &PriceTable) -> Option<String> {
    let doc = Doc::parse(data).ok()?;
    note_of(kind, doc.root(), at, table, Hint::default())
}

/// Sums up a whole log.
pub fn session_usage<'a>(
    events: impl IntoIterator<Item = EventView<'a>>,
    table: &PriceTable,
    pricing: Pricing,
) -> UsageState {
    let mut state = UsageState::new(pricing);
    for event in events {
        state.push(event, table);
    }
    state
}
