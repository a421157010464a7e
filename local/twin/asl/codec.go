package asl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// codecVersion is the version in every document. Decode returns an error for other versions.
const codecVersion = 1

// Append appends a running execution as JSON to dst. The document has everything that Decode
// needs in addition to the definition.
func (e *Execution) Append(dst []byte) []byte {
	w := writer{dst: append(dst, '{')}
	w.integer("v", codecVersion)
	w.integer("s", e.started)
	w.integer("n", e.entered)
	w.integer("h", e.events)
	w.integer("a", e.attempts)
	w.value("i", e.input)
	if e.root != nil {
		w.key("f")
		w.frame(e.root, e.input)
	}
	return append(w.dst, '}')
}

type writer struct{ dst []byte }

func (w *writer) key(key string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, key...)
	w.dst = append(w.dst, '"', ':')
}

// integer omits 0.
func (w *writer) integer(key string, n int64) {
	if n != 0 {
		w.key(key)
		w.dst = strconv.AppendInt(w.dst, n, 10)
	}
}

func (w *writer) value(key string, value any) {
	w.key(key)
	w.dst = document.Append(w.dst, value)
}

// frame omits the input if it is the same object as the outer frame's.
func (w *writer) frame(f *frame, outer any) {
	w.dst = append(w.dst, '{')
	w.integer("x", int64(f.index))
	w.key("n")
	w.dst = document.AppendString(w.dst, f.state.name)
	if object, ok := f.input.(*document.Object); !ok || object != outer {
		w.value("i", f.input)
	}
	w.integer("t", f.enteredAt)
	w.integer("e", f.enteredEvent)
	w.integer("r", f.retries)
	if f.retries > 0 {
		w.key("u")
		w.dst = append(w.dst, '[')
		for i, n := range f.used {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = strconv.AppendInt(w.dst, n, 10)
		}
		w.dst = append(w.dst, ']')
	}
	w.integer("w", int64(f.waiting))
	w.integer("d", f.until)
	if f.attempt != nil {
		w.attempt(f.attempt, f.input)
	}
	if f.children != nil {
		w.children(f.children, f.input)
	}
	w.dst = append(w.dst, '}')
}

func (w *writer) attempt(a *attempt, outer any) {
	w.key("a")
	w.dst = append(w.dst, '{')
	w.integer("n", a.id)
	if a.token != "" {
		w.value("t", a.token)
	}
	w.integer("d", a.timeoutAt)
	w.integer("h", a.heartbeat)
	w.integer("l", a.lateAt)
	if a.inFlight {
		w.integer("f", 1)
		if object, ok := a.payload.(*document.Object); !ok || object != outer {
			w.value("p", a.payload)
		}
	}
	if a.early != nil {
		w.key("o")
		w.outcome(a.early)
	}
	w.dst = append(w.dst, '}')
}

func (w *writer) outcome(o *outcome) {
	w.dst = append(w.dst, '{')
	if o.failure != nil {
		w.value("e", o.failure.document())
	} else {
		w.value("o", o.output)
	}
	w.dst = append(w.dst, '}')
}

// children writes results as one-element arrays, and 0 for missing ones.
func (w *writer) children(c *children, outer any) {
	w.key("c")
	w.dst = append(w.dst, '{')
	w.integer("l", int64(c.limit))
	w.integer("n", int64(c.next))
	if c.items != nil {
		w.value("m", c.items)
	}
	w.key("r")
	w.dst = append(w.dst, '[')
	for i, ended := range c.ended {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if ended {
			w.dst = append(document.Append(append(w.dst, '['), c.results[i]), ']')
		} else {
			w.dst = append(w.dst, '0')
		}
	}
	w.dst = append(w.dst, ']')
	w.key("k")
	w.dst = append(w.dst, '[')
	for i, child := range c.active {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.frame(child, outer)
	}
	w.dst = append(w.dst, ']', '}')
}

// Decode parses a document that Append has written. It returns an error for another version or
// another machine.
func (m *Machine) Decode(text []byte) (*Execution, error) {
	value, err := document.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot decode the execution: %w", err)
	}
	d := &decoder{}
	top := d.object(value)
	if d.integer(top, "v") != codecVersion {
		return nil, errors.New("cannot decode the execution: unsupported version")
	}
	e := &Execution{
		machine: m, status: Running,
		started: d.integer(top, "s"), entered: d.integer(top, "n"), events: d.integer(top, "h"), attempts: d.integer(top, "a"),
	}
	e.input, _ = top.Get("i")
	root, _ := top.Get("f")
	e.root = &frame{execution: e, graph: &m.graph}
	d.frame(e.root, root, e.input)
	if d.err != nil {
		return nil, fmt.Errorf("cannot decode the execution: %w", d.err)
	}
	return e, nil
}

// decoder keeps the first error.
type decoder struct{ err error }

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = errors.New(what)
	}
}

func (d *decoder) object(value any) *document.Object {
	object, ok := value.(*document.Object)
	if !ok {
		d.fail("missing object")
		return &document.Object{}
	}
	return object
}

func (d *decoder) list(object *document.Object, key string) []any {
	value, ok := object.Get(key)
	list, isList := value.([]any)
	if ok && !isList {
		d.fail("missing array")
	}
	return list
}

func (d *decoder) integer(object *document.Object, key string) int64 {
	value, ok := object.Get(key)
	if !ok {
		return 0
	}
	return d.number(value)
}

func (d *decoder) number(value any) int64 {
	number, _ := value.(json.Number)
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		d.fail("missing number")
	}
	return n
}

func (d *decoder) frame(f *frame, value, outer any) {
	object := d.object(value)
	name, _ := object.Get("n")
	text, _ := name.(string)
	if f.state = f.graph.states[text]; f.state == nil {
		d.fail(fmt.Sprintf("unknown state %q", text))
		return
	}
	input, ok := object.Get("i")
	if !ok {
		input = outer
	}
	f.input = input
	f.enteredAt, f.enteredEvent = d.integer(object, "t"), d.integer(object, "e")
	f.retries = d.integer(object, "r")
	if used := d.list(object, "u"); used != nil {
		f.used = make([]int64, max(len(used), len(f.state.retry)))
		for i, n := range used {
			f.used[i] = d.number(n)
		}
	}
	f.waiting, f.until = waiting(d.integer(object, "w")), d.integer(object, "d")
	if a, ok := object.Get("a"); ok {
		f.attempt = d.attempt(d.object(a), f.input)
	}
	if c, ok := object.Get("c"); ok {
		d.children(f, d.object(c))
	}
	if f.waiting == waitNothing || f.waiting > waitChildren ||
		(f.waiting == waitTask) != (f.attempt != nil) || (f.waiting == waitChildren) != (f.children != nil) {
		d.fail("state without a pending event")
	}
}

func (d *decoder) attempt(object *document.Object, outer any) *attempt {
	a := &attempt{
		id: d.integer(object, "n"), timeoutAt: d.integer(object, "d"),
		heartbeat: d.integer(object, "h"), lateAt: d.integer(object, "l"), inFlight: d.integer(object, "f") == 1,
	}
	token, _ := object.Get("t")
	a.token, _ = token.(string)
	if a.inFlight {
		if payload, ok := object.Get("p"); ok {
			a.payload = payload
		} else {
			a.payload = outer
		}
	}
	if early, ok := object.Get("o"); ok {
		a.early = d.outcome(d.object(early))
	}
	return a
}

func (d *decoder) outcome(object *document.Object) *outcome {
	failed, ok := object.Get("e")
	if !ok {
		output, _ := object.Get("o")
		return &outcome{output: output}
	}
	text := func(key string) *string {
		value, _ := d.object(failed).Get(key)
		if s, ok := value.(string); ok {
			return &s
		}
		return nil
	}
	return &outcome{failure: &Failure{Code: text("Error"), Cause: text("Cause")}}
}

func (d *decoder) children(f *frame, object *document.Object) {
	results := d.list(object, "r")
	c := &children{
		items: d.list(object, "m"), limit: int(d.integer(object, "l")), next: int(d.integer(object, "n")),
		total: len(results), left: len(results), results: make([]any, len(results)), ended: make([]bool, len(results)),
	}
	for i, value := range results {
		if one, ok := value.([]any); ok && len(one) == 1 {
			c.results[i], c.ended[i] = one[0], true
			c.left--
		}
	}
	f.children = c
	for _, value := range d.list(object, "k") {
		index := int(d.integer(d.object(value), "x"))
		child := &frame{execution: f.execution, parent: f, index: index}
		switch {
		case index < 0 || index >= c.total:
			d.fail("missing child")
			return
		case f.state.kind == kindMap && index < len(c.items):
			child.graph, child.item = f.state.branches[0], c.items[index]
		case f.state.kind == kindParallel && index < len(f.state.branches):
			child.graph = f.state.branches[index]
		default:
			d.fail("missing child")
			return
		}
		d.frame(child, value, f.input)
		c.active = append(c.active, child)
	}
}
