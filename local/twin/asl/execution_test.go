package asl_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

const callback = `{"StartAt":"A","States":{
"A":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken","Parameters":{"t.$":"$$.Task.Token","n.$":"$.n"},
 "HeartbeatSeconds":10,"TimeoutSeconds":60,"ResultPath":"$.r","Retry":[{"ErrorEquals":["Again"],"IntervalSeconds":5}],
 "Catch":[{"ErrorEquals":["States.ALL"],"ResultPath":"$.e","Next":"B"}],"Next":"B"},
"B":{"Type":"Succeed"}}}`

// fixture is an execution that is encoded and decoded between all stimuli.
type fixture struct {
	t         *testing.T
	machine   *asl.Machine
	execution *asl.Execution
	calls     []asl.Invocation
	env       asl.Env
	bits      uint64
}

func start(t *testing.T, definition, input string) *fixture {
	t.Helper()
	machine, err := asl.Parse([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, machine: machine, env: asl.Env{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	f.env.Random = func() uint64 { f.bits++; return f.bits }
	value, err := document.Parse([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	f.execution, f.calls = machine.Start(f.env, value)
	f.store()
	return f
}

func (f *fixture) store() {
	f.t.Helper()
	if f.execution.Status() != asl.Running {
		return
	}
	text := f.execution.Append(nil)
	again, err := f.machine.Decode(text)
	if err != nil {
		f.t.Fatalf("%s: %v", text, err)
	}
	if diff := cmp.Diff(string(text), string(again.Append(nil))); diff != "" {
		f.t.Fatal(diff)
	}
	before, okBefore := f.execution.Deadline()
	after, okAfter := again.Deadline()
	if !before.Equal(after) || okBefore != okAfter {
		f.t.Fatalf("got deadline %[2]v after decoding, want %[1]v", before, after)
	}
	f.execution = again
}

func (f *fixture) do(calls []asl.Invocation, ok bool) bool {
	f.t.Helper()
	f.calls = calls
	f.store()
	return ok
}

func (f *fixture) pass(seconds int) {
	f.t.Helper()
	f.env.Now = f.env.Now.Add(time.Duration(seconds) * time.Second)
	f.do(f.execution.Tick(f.env), true)
}

func (f *fixture) ended(status asl.Status, output string) {
	f.t.Helper()
	if f.execution.Status() != status || document.String(f.execution.Output()) != output {
		f.t.Errorf("got %s with %s, want %s with %s", f.execution.Status(), document.String(f.execution.Output()), status, output)
	}
}

func TestTokenAfterInvocation(t *testing.T) {
	t.Parallel()
	f := start(t, callback, `{"n":1}`)
	call := f.calls[0]
	if !call.Callback || document.String(call.Payload) != `{"t":"`+call.Token+`","n":1}` {
		t.Fatalf("got %+v", call)
	}
	if !f.do(f.execution.Returned(f.env, call.Attempt, nil)) || f.do(f.execution.Returned(f.env, call.Attempt, nil)) {
		t.Error("a second return of an invocation was accepted")
	}
	if f.do(f.execution.Succeed(f.env, "other", nil)) {
		t.Error("an unknown token was accepted")
	}
	if !f.do(f.execution.Succeed(f.env, call.Token, "x")) || f.do(f.execution.Succeed(f.env, call.Token, "y")) {
		t.Error("a completed token was accepted")
	}
	f.ended(asl.Succeeded, `{"n":1,"r":"x"}`)
}

func TestTokenBeforeInvocationReturns(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]func(*fixture, asl.Invocation){
		"invocation returns": func(f *fixture, c asl.Invocation) { f.do(f.execution.Returned(f.env, c.Attempt, nil)) },
		"invocation fails": func(f *fixture, c asl.Invocation) {
			f.do(f.execution.Failed(f.env, c.Attempt, asl.NewFailure("Again", "")))
		},
		"invocation never ends": func(f *fixture, _ asl.Invocation) { f.pass(60) },
		"crash": func(f *fixture, _ asl.Invocation) {
			if len(f.execution.InFlight()) != 0 {
				f.t.Error("invocation is repeated")
			}
			f.do(nil, f.execution.Resume(f.env))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, callback, `{"n":1}`)
			call := f.calls[0]
			if !f.do(f.execution.Succeed(f.env, call.Token, "x")) || f.do(f.execution.Fail(f.env, call.Token, asl.NewFailure("E", ""))) {
				t.Error("a completed token was accepted")
			}
			if f.execution.Status() != asl.Running || f.heartbeat(call.Token) {
				t.Error("the token is still awaited, or the invocation was not")
			}
			finish(f, call)
			f.ended(asl.Succeeded, `{"n":1,"r":"x"}`)
		})
	}
}

// heartbeat accepts a heartbeat in a pulse and applies it to the execution.
func (f *fixture) heartbeat(token string) bool {
	pulse := f.execution.Pulse()
	accepted := pulse.Heartbeat(f.env.Now, token)
	f.execution.ApplyHeartbeats(pulse)
	return accepted
}

func TestHeartbeats(t *testing.T) {
	t.Parallel()
	f := start(t, callback, `{"n":1}`)
	call := f.calls[0]
	f.do(f.execution.Returned(f.env, call.Attempt, nil))
	for range 5 {
		f.pass(9)
		if !f.heartbeat(call.Token) {
			t.Fatal("an unknown token was accepted")
		}
		f.store()
	}
	f.pass(9)
	if f.execution.Status() != asl.Running {
		t.Fatal("a heartbeat was refused")
	}
	f.heartbeat(call.Token)
	f.pass(6) // TimeoutSeconds, which heartbeats do not extend
	f.ended(asl.Succeeded, `{"n":1,"e":{"Error":"States.Timeout","Cause":""}}`)
}

func TestEachTryHasAToken(t *testing.T) {
	t.Parallel()
	f := start(t, callback, `{"n":1}`)
	first := f.calls[0]
	f.do(f.execution.Returned(f.env, first.Attempt, nil))
	f.do(f.execution.Fail(f.env, first.Token, asl.NewFailure("Again", "")))
	if due, _ := f.execution.Deadline(); !due.Equal(f.env.Now.Add(5 * time.Second)) {
		t.Errorf("got the next try at %v", due)
	}
	f.pass(5)
	second := f.calls[0]
	if second.Token == first.Token || f.do(f.execution.Succeed(f.env, first.Token, nil)) {
		t.Error("the token of an earlier try was accepted")
	}
	if diff := cmp.Diff([]asl.Invocation{second}, f.execution.InFlight(), cmp.Comparer(func(a, b *document.Object) bool { return document.Equal(a, b) })); diff != "" {
		t.Error(diff)
	}
	if !f.do(f.execution.Succeed(f.env, second.Token, nil)) {
		t.Error("the token of this try was refused")
	}
}

func TestParallelAndMapAreStored(t *testing.T) {
	t.Parallel()
	f := start(t, `{"StartAt":"P","States":{"P":{"Type":"Parallel","End":true,"Branches":[
		{"StartAt":"M","States":{"M":{"Type":"Map","MaxConcurrency":2,"ItemsPath":"$.l","End":true,"ItemProcessor":{"StartAt":"T","States":{
			"T":{"Type":"Task","Resource":"r","Parameters":{"v.$":"$$.Map.Item.Value","i.$":"$$.Map.Item.Index"},"Retry":[{"ErrorEquals":["E"]}],"End":true}}}}}},
		{"StartAt":"W","States":{"W":{"Type":"Wait","Seconds":100,"End":true}}}]}}}`, `{"l":["a","b","c"]}`)
	todo := f.calls
	failed := false
	for f.execution.Status() == asl.Running {
		if len(todo) == 0 {
			due, _ := f.execution.Deadline()
			f.env.Now = due
			f.do(f.execution.Tick(f.env), true)
			todo = f.calls
			continue
		}
		call := todo[0]
		todo = todo[1:]
		if document.String(call.Payload) == `{"v":"b","i":1}` && !failed {
			failed = true
			f.do(f.execution.Failed(f.env, call.Attempt, asl.NewFailure("E", "")))
		} else {
			f.do(f.execution.Returned(f.env, call.Attempt, call.Payload))
		}
		todo = append(todo, f.calls...)
	}
	f.ended(asl.Succeeded, `[[{"v":"a","i":0},{"v":"b","i":1},{"v":"c","i":2}],{"l":["a","b","c"]}]`)
	if f.execution.Entered() != 6 {
		t.Errorf("%d states were entered", f.execution.Entered())
	}
}

func TestAbort(t *testing.T) {
	t.Parallel()
	f := start(t, callback, `{"n":1}`)
	call := f.calls[0]
	if !f.execution.Abort(f.env, "", "enough") || f.execution.Abort(f.env, "", "again") {
		t.Error("a second abort was accepted")
	}
	if _, due := f.execution.Deadline(); due || f.do(f.execution.Succeed(f.env, call.Token, nil)) {
		t.Error("got a deadline or an invocation after the abort")
	}
	f.ended(asl.Aborted, "null")
}

func TestJitterStaysBelowTheDelay(t *testing.T) {
	t.Parallel()
	for _, bits := range []uint64{0, 1 << 63, 1<<64 - 1} {
		f := start(t, one(`"Type":"Task","Resource":"r","Retry":[{"ErrorEquals":["E"],"IntervalSeconds":8,"JitterStrategy":"FULL"}],"End":true`), `{}`)
		f.env.Random = func() uint64 { return bits }
		f.do(f.execution.Failed(f.env, 1, asl.NewFailure("E", "")))
		due, _ := f.execution.Deadline()
		want := time.Duration(float64(bits>>11) / (1 << 53) * 8 * float64(time.Second))
		if got := due.Sub(f.env.Now); got < want || got > want+time.Millisecond {
			t.Errorf("%x: got delay %v, want %v", bits, got, want)
		}
	}
}

func TestDecodeRefusesForeignDocuments(t *testing.T) {
	t.Parallel()
	f := start(t, callback, `{}`)
	for _, text := range []string{
		``, `[]`, `{}`, `{"v":2}`, `{"v":1}`, `{"v":1,"f":{"n":"X","w":1}}`, `{"v":1,"f":{"n":"A","w":3}}`, `{"v":1,"f":{"n":"B"}}`,
		`{"v":1,"f":{"n":"A","w":4,"c":{"r":[0],"k":[{"n":"B","w":1}]}}}`,
	} {
		if _, err := f.machine.Decode([]byte(text)); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
}

// FuzzParse searches for definitions whose parsing or execution panics or does
// not end.
func FuzzParse(f *testing.F) {
	f.Add(callback, `{"n":1}`)
	f.Add(one(`"Type":"Map","ItemProcessor":{"StartAt":"B","States":{"B":{"Type":"Pass","Parameters":{"a.$":"$$.Map"},"End":true}}},"End":true`), `[1,[]]`)
	f.Add(one(`"Type":"Choice","Choices":[{"Variable":"$.a","StringMatches":"*a*","Next":"A"}]`), `{"a":"b"}`)
	f.Add(one(`"Type":"Wait","SecondsPath":"$.s","End":true`), `{"s":1}`)
	f.Fuzz(func(t *testing.T, definition, input string) {
		machine, err := asl.Parse([]byte(definition))
		if (err == nil) != (len(asl.Validate([]byte(definition))) == 0) {
			t.Fatal("Parse and Validate differ")
		}
		value, inputErr := document.Parse([]byte(input))
		if err != nil || inputErr != nil {
			return
		}
		env := asl.Env{Now: time.UnixMilli(1_767_225_600_000), Random: func() uint64 { return 7 }}
		execution, _ := machine.Start(env, value)
		for range 20 {
			if execution.Status() != asl.Running {
				return
			}
			again, err := machine.Decode(execution.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			execution = again
			for _, call := range execution.InFlight() {
				execution.Returned(env, call.Attempt, call.Payload)
			}
			if due, ok := execution.Deadline(); ok {
				env.Now = due
				execution.Tick(env)
			}
		}
	})
}

// BenchmarkStep measures one state of a run: an invocation returns, a Choice is
// evaluated, and the next Task is entered. "stored" encodes and decodes the
// execution in between.
func BenchmarkStep(b *testing.B) {
	machine, err := asl.Parse([]byte(`{"StartAt":"A","States":{
		"A":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload":{"runId.$":"$.runId","step.$":"$$.State.Name"}},"OutputPath":"$.Payload","Next":"C"},
		"C":{"Type":"Choice","Choices":[{"Variable":"$.next","StringEquals":"B","Next":"A"},{"Variable":"$.next","StringEquals":"A","Next":"A"}],"Default":"A"}}}`))
	if err != nil {
		b.Fatal(err)
	}
	input, _ := document.Parse([]byte(`{"tenant":"default","runId":"export_mods_1700000000000_0123abcd","next":"A","generation":3}`))
	output := document.NewObject(document.Member{Key: "Payload", Value: input})
	env := asl.Env{Now: time.UnixMilli(1_767_225_600_000), Random: func() uint64 { return 7 }}
	for _, stored := range []bool{false, true} {
		name := "pure"
		if stored {
			name = "stored"
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var execution *asl.Execution
			var calls []asl.Invocation
			var text []byte
			for b.Loop() {
				if execution == nil || execution.Status() != asl.Running {
					execution, calls = machine.Start(env, input)
				}
				if stored {
					text = execution.Append(text[:0])
					if execution, err = machine.Decode(text); err != nil {
						b.Fatal(err)
					}
				}
				calls, _ = execution.Returned(env, calls[0].Attempt, output)
			}
			b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "states/s")
		})
	}
}
