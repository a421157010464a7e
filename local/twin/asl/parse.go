package asl

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

func parse(definition []byte) (*Machine, *problems) {
	found := &problems{}
	if len(definition) > maxDefinition {
		found.add("", "definition larger than %d bytes", maxDefinition)
		return nil, found
	}
	value, err := document.Parse(definition)
	if err != nil {
		found.add("", "%v", err)
		return nil, found
	}
	r, ok := found.reader("", value)
	if !ok {
		return nil, found
	}
	machine := &Machine{}
	r.text("Comment")
	r.language()
	if version, ok := r.text("Version"); ok && version != "1.0" {
		r.add("Version", `must be "1.0"`)
	}
	machine.timeoutSeconds, _ = r.integer("TimeoutSeconds", 1, maxSeconds)
	names := map[string]string{}
	machine.graph = *r.graph(names)
	r.done()
	return machine, found
}

// graph parses StartAt and States. names maps the names of the whole machine,
// which must be unique, to their places.
func (r *reader) graph(names map[string]string) *graph {
	g := &graph{startAt: r.required("StartAt"), states: map[string]*state{}}
	value, ok := r.get("States")
	if !ok {
		r.add(r.at("States"), "is missing")
		return g
	}
	states, ok := r.reader(r.at("States"), value)
	if !ok {
		return g
	}
	if states.object.Len() == 0 {
		r.add(states.place, "is empty")
		return g
	}
	for _, m := range states.object.Members() {
		place := states.at(m.Key)
		if n := utf8.RuneCountInString(m.Key); n == 0 || n > maxStateName {
			r.add(place, "a state's name has 1 to %d characters", maxStateName)
		}
		if other, taken := names[m.Key]; taken {
			r.add(place, "duplicate of %s", other)
		}
		names[m.Key] = place
		g.states[m.Key] = states.state(m.Key, names)
		g.order = append(g.order, m.Key)
	}
	r.checkTargets(g, states.place)
	return g
}

func (r *reader) state(name string, names map[string]string) *state {
	s := &state{name: name}
	value, _ := r.get(name)
	f, ok := r.reader(r.at(name), value)
	if !ok {
		return s
	}
	f.text("Comment")
	f.language()
	f.refuse("variables", "Assign")
	f.refuse("JSONata", "Arguments", "Output", "Items")
	s.kind = kind(f.required("Type"))
	switch s.kind {
	case kindPass:
		f.dataFlow(s)
		f.transition(s)
		s.parameters = f.template("Parameters")
		s.result, s.hasResult = f.get("Result")
		s.resultPath = f.target("ResultPath")
	case kindTask:
		f.dataFlow(s)
		f.transition(s)
		f.task(s)
	case kindChoice:
		f.dataFlow(s)
		f.choice(s)
	case kindWait:
		f.dataFlow(s)
		f.transition(s)
		f.wait(s)
	case kindSucceed:
		f.dataFlow(s)
	case kindFail:
		f.fail(s)
	case kindParallel:
		f.dataFlow(s)
		f.transition(s)
		f.parallel(s, names)
	case kindMap:
		f.dataFlow(s)
		f.transition(s)
		f.mapState(s, names)
	case "":
		return s
	default:
		f.add(f.at("Type"), "unknown type %q", string(s.kind))
		return s
	}
	f.done()
	return s
}

func (r *reader) dataFlow(s *state) {
	s.inputPath = r.field("InputPath", true)
	s.outputPath = r.field("OutputPath", true)
}

// transition parses Next or End, of which a state has exactly one.
func (r *reader) transition(s *state) {
	end := r.flag("End")
	hasNext := r.has("Next")
	s.end = end
	s.next, _ = r.text("Next")
	switch {
	case end && hasNext:
		r.add(r.at("End"), "cannot be combined with Next")
	case !end && !hasNext:
		r.add(r.place, "has neither Next nor End")
	case hasNext && s.next == "":
		r.add(r.at("Next"), "is empty")
	}
}

func (r *reader) task(s *state) {
	s.resource = r.required("Resource")
	s.callback = strings.HasSuffix(s.resource, ".waitForTaskToken")
	s.job = strings.HasSuffix(s.resource, ".sync") || strings.HasSuffix(s.resource, ".sync:2")
	s.parameters = r.template("Parameters")
	r.template("Credentials")
	s.timeout = r.amount("TimeoutSeconds", 1, maxSeconds)
	s.heartbeat = r.amount("HeartbeatSeconds", 1, maxSeconds)
	if s.heartbeat.value > 0 && s.timeout.value > 0 && s.heartbeat.value >= s.timeout.value {
		r.add(r.at("HeartbeatSeconds"), "must be less than TimeoutSeconds")
	}
	r.results(s)
}

// results parses the fields with which Task, Parallel and Map process a result.
func (r *reader) results(s *state) {
	s.resultSelector = r.template("ResultSelector")
	s.resultPath = r.target("ResultPath")
	s.retry = r.retriers()
	s.catch = r.catchers()
}

func (r *reader) wait(s *state) {
	forms := 0
	for _, key := range []string{"Seconds", "SecondsPath", "Timestamp", "TimestampPath"} {
		if r.has(key) {
			forms++
		}
	}
	if forms != 1 {
		r.add(r.place, "got %d of Seconds, SecondsPath, Timestamp and TimestampPath, want one", forms)
	}
	value, literal := r.integer("Seconds", 0, maxSeconds)
	s.seconds = amount{set: literal, value: value}
	if p := r.path("SecondsPath"); p != nil {
		s.seconds = amount{set: true, path: p}
	}
	if text, ok := r.text("Timestamp"); ok {
		if _, valid := parseTimestamp(text, true); !valid {
			r.add(r.at("Timestamp"), "must be a time such as 2026-01-31T12:00:00Z")
		}
		s.timestamp = text
	}
	s.timestampPath = r.path("TimestampPath")
}

func (r *reader) fail(s *state) {
	s.errorText = r.failText("Error")
	s.causeText = r.failText("Cause")
}

// failText parses a literal under key or an expression under key + "Path".
func (r *reader) failText(key string) *expression {
	text, literal := r.text(key)
	computed, dynamic := r.text(key + "Path")
	if literal && dynamic {
		r.add(r.at(key), "cannot be combined with %sPath", key)
	}
	switch {
	case dynamic:
		return r.parseExpression(r.at(key+"Path"), computed)
	case literal:
		return &expression{literal: text}
	default:
		return nil
	}
}

func (r *reader) parallel(s *state, names map[string]string) {
	s.parameters = r.template("Parameters")
	branches, ok := r.list("Branches")
	if len(branches) == 0 {
		if ok || !r.has("Branches") {
			r.add(r.at("Branches"), "want at least one")
		}
	}
	for i, value := range branches {
		if branch, ok := r.reader(fmt.Sprintf("%s[%d]", r.at("Branches"), i), value); ok {
			branch.text("Comment")
			branch.language()
			s.branches = append(s.branches, branch.graph(names))
			branch.done()
		}
	}
	r.results(s)
}

func (r *reader) mapState(s *state, names map[string]string) {
	r.refuse("distributed Map", "ItemReader", "ItemBatcher", "ResultWriter", "Label", "ToleratedFailureCount",
		"ToleratedFailureCountPath", "ToleratedFailurePercentage", "ToleratedFailurePercentagePath")
	s.itemsPath = r.field("ItemsPath", false)
	s.maxConcurrency = r.amount("MaxConcurrency", 0, maxSeconds)
	if r.has("Parameters") && r.has("ItemSelector") {
		r.add(r.at("Parameters"), "cannot be combined with ItemSelector")
	}
	if s.itemSelector = r.template("Parameters"); s.itemSelector == nil {
		s.itemSelector = r.template("ItemSelector")
	} else {
		r.asked["ItemSelector"] = true
	}
	key := "ItemProcessor"
	if r.has("Iterator") {
		if r.has(key) {
			r.add(r.at("Iterator"), "cannot be combined with ItemProcessor")
			r.asked[key] = true
		}
		key = "Iterator"
	}
	if value, ok := r.get(key); !ok {
		r.add(r.at(key), "is missing")
	} else if processor, ok := r.reader(r.at(key), value); ok {
		processor.processor(s, names)
	}
	r.results(s)
}

func (r *reader) processor(s *state, names map[string]string) {
	r.text("Comment")
	r.language()
	if value, ok := r.get("ProcessorConfig"); ok {
		if config, ok := r.reader(r.at("ProcessorConfig"), value); ok {
			switch mode, set := config.text("Mode"); {
			case !set || mode == "INLINE":
			case mode == "DISTRIBUTED":
				config.unsupported(config.at("Mode"), "distributed Map")
			default:
				config.add(config.at("Mode"), "must be INLINE")
			}
			config.text("ExecutionType")
			config.done()
		}
	}
	s.branches = []*graph{r.graph(names)}
	r.done()
}
