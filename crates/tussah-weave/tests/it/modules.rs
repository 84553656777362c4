//! The modules that the tests use, in a short notation.

use tussah_weave::{
    Body, Domain, Kind, Modules, Parallelism, ParamSignature, PortSignature, Signature, Type, Value,
};

/// One module a line: `path<generics>(param: kind, optional?: kind) inputs -> outputs properties`.
/// An output with `!` must be connected. A kind can end with a range, with words, or with
/// `field of` and a type, in brackets.
const MODULES: &str = "
    http::Listen(listen: address, at_once?: count) -> out!: Request, bad: Answer
    http::Reply() run: Answer, busy: Request -> failed: Error
    files::Read(root: path) run: Load -> out!: Loaded, dropped: Load, failed: Error blocking
    files::Lost() run: Load -> out!: Loaded
    PageCache(limit: size) run: Request, loaded: Loaded -> out!: Answer, miss!: Load, dropped: Request
    lines::Files(paths: path) -> out!: Line
    lines::Accept(listen: address) -> out!: Line
    lines::Parse() run: Line -> out!: Record, bad: Dead serial
    lines::Enrich(table: path) run: Record -> out!: Record, failed: Dead flow
    lines::Send(to: address) run: Record -> failed: Record async
    lines::Write(file: path) run: Dead serial blocking
    flow::Frames(framing: text[lines|lengths], depth?: count[1..8], share?: number[0..1], every?: duration[0.001..]) -> out!: Line
    flow::Retry<T>(times: count) run: T -> out!: T, exhausted: Dead
    flow::Delay<T>(time: duration) run: T -> out!: T
    flow::Log<T>(level?: text) run: T -> out: T
    flow::Rate<T>(limit: rate, burst?: number) run: T -> out!: T, dropped: T
    flow::Pair<A, B>() left: A, right: B -> out!: (A, B)
    flow::Either<A, B>() run: A -> out: A, other: B
    flow::Source<T>() -> out!: T
    flow::Sink<T>() run: T
    flow::Select<T>(field: text[field of T], is?: text) run: T -> out!: T, rest: T
    flow::Mark<T>() run: T -> out: T
    flow::Move<OnceT>() run: OnceT -> out!: OnceT
    Files() -> out!: OnceFile
    video::Accept(listen: address) -> out!: Client
    video::Control(idle: duration) run: Client -> out!: Start, reply: Answer serial
    video::Stream(ahead: size, pace: duration) run: Start, block: Block, tick: Tick -> need!: Load, packet!: Packet, tick!: Tick flow
    video::Disk(root: path) run: Load -> out!: Block blocking
    video::Net() run: Packet -> failed: Error async
";

/// The fields of item types.
const ITEMS: &[(&str, &[&str])] = &[
    ("Request", &["path", "host", "method"]),
    ("Loaded", &["path", "bytes"]),
    ("Load", &["path"]),
    ("Record", &["user", "time"]),
    ("logs::Event", &["code"]),
];

/// The types of generic modules that do not exist for all types.
const TYPES: &[(&str, &[&str])] = &[("flow::Mark", &["Line", "a::Record", "b::Record"])];

/// Returns the modules.
pub fn modules() -> Modules {
    let mut modules = Modules::default();
    let lines = MODULES
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    lines.for_each(|line| modules.insert(signature(line)));
    for (item, fields) in ITEMS {
        let fields = fields.iter().map(|&field| field.to_owned()).collect();
        modules.items.insert((*item).to_owned(), fields);
    }
    for (module, types) in TYPES {
        let types = types.iter().map(|ty| vec![Type::parse(ty).expect(ty)]);
        modules.types.insert((*module).to_owned(), types.collect());
    }
    modules
}

fn signature(line: &str) -> Signature {
    let (head, rest) = line.split_once('(').expect(line);
    let (params, mut rest) = rest.split_once(')').expect(line);
    let (name, generics) = head.split_once('<').unwrap_or((head, ""));
    let mut signature = Signature::new(name);
    let generics = generics.trim_end_matches('>').split(", ");
    signature.generics = generics
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    for param in params.split(", ").filter(|param| !param.is_empty()) {
        let (name, kind) = param.split_once(": ").expect(line);
        let (kind, domain) = kind.split_once('[').unwrap_or((kind, ""));
        signature.params.push(ParamSignature {
            name: name.trim_end_matches('?').to_owned(),
            kind: kind_of(kind),
            domain: domain_of(domain.trim_end_matches(']')),
            optional: name.ends_with('?'),
            doc: String::new(),
        });
    }
    for (word, set) in PROPERTIES {
        if let Some(before) = rest.strip_suffix(word) {
            rest = before;
            set(&mut signature);
        }
    }
    let (inputs, outputs) = rest.split_once("->").unwrap_or((rest, ""));
    signature.inputs = ports(inputs);
    signature.outputs = ports(outputs);
    signature
}

type Set = fn(&mut Signature);

/// The properties with their changes, in the reverse of their order in a line.
const PROPERTIES: &[(&str, Set)] = &[
    (" blocking", |signature| signature.body = Body::Blocking),
    (" async", |signature| signature.body = Body::Async),
    (" serial", |signature| {
        signature.parallelism = Parallelism::Serial
    }),
    (" flow", |signature| {
        signature.parallelism = Parallelism::Flow
    }),
];

fn ports(text: &str) -> Vec<PortSignature> {
    // A comma also separates the parts of a tuple.
    let ports = text
        .split(", ")
        .fold(Vec::<String>::new(), |mut ports, part| {
            match ports.last_mut() {
                Some(last) if !part.contains(": ") => *last = format!("{last}, {part}"),
                _ => ports.push(part.trim().to_owned()),
            }
            ports
        });
    let ports = ports.iter().filter(|port| !port.is_empty()).map(|port| {
        let (name, item) = port.split_once(": ").expect(port);
        PortSignature {
            name: name.trim_end_matches('!').to_owned(),
            item: Type::parse(item).expect(port),
            required: name.ends_with('!'),
            clones: !item.starts_with("Once"),
            doc: String::new(),
        }
    });
    ports.collect()
}

fn domain_of(text: &str) -> Domain {
    if let Some(item) = text.strip_prefix("field of ") {
        return Domain {
            field_of: Some(Type::parse(item).expect(text)),
            ..Domain::default()
        };
    }
    match text.split_once("..") {
        Some((least, most)) => Domain {
            least: least.parse().ok(),
            most: most.parse().ok(),
            ..Domain::default()
        },
        None => Domain {
            words: text.split_terminator('|').map(str::to_owned).collect(),
            ..Domain::default()
        },
    }
}

fn kind_of(name: &str) -> Kind {
    let examples = [
        Value::Flag(true),
        Value::Count(0),
        Value::Number(0.0),
        Value::Size(0),
        Value::Duration(std::time::Duration::ZERO),
        Value::Rate(0.0),
        Value::Text(String::new()),
        Value::Path(String::new()),
        Value::Address(String::new()),
    ];
    let kinds = examples.iter().map(Value::kind);
    kinds
        .clone()
        .find(|kind| kind.to_string() == name)
        .expect(name)
}

#[test]
fn the_notation_is_read() {
    let modules = modules();
    let pair = &modules.signatures["flow::Pair"];
    assert_eq!(pair.generics, ["A", "B"]);
    assert_eq!(pair.outputs[0].item.to_string(), "(A, B)");
    let parse = &modules.signatures["lines::Parse"];
    assert_eq!(parse.parallelism, Parallelism::Serial);
    assert!(modules.signatures["http::Listen"].inputs.is_empty());
}
