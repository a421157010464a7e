package asl

import (
	"encoding/json"
	"strconv"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
	"github.com/sortie-dev/sortie/local/twin/asl/path"
)

// find resolves a path in the data or in the context object.
func (f *frame) find(env *Env, p path.Path, data any) (any, error) {
	if p.Context() {
		data = f.contextObject(env)
	}
	return p.Find(data)
}

func (f *frame) has(env *Env, p path.Path, data any) bool {
	if p.Context() {
		data = f.contextObject(env)
	}
	return p.Has(data)
}

// apply applies InputPath, OutputPath or ItemsPath. Without a path it returns data, and for
// null the empty object. The error is a *Failure.
func (f *frame) apply(env *Env, p *field, data any) (any, error) {
	switch {
	case !p.set:
		return data, nil
	case p.null:
		return document.NewObject(), nil
	}
	value, err := f.find(env, p.path, data)
	if err != nil {
		return nil, f.failure(errorRuntime, "Invalid path '%s' : %s", p.path, err)
	}
	return value, nil
}

// effective returns the raw input after InputPath.
func (f *frame) effective(env *Env) (any, error) { return f.apply(env, &f.state.inputPath, f.input) }

// fill evaluates a template, or returns data without one.
func (f *frame) fill(env *Env, t *template, data any) (any, error) {
	if t == nil {
		return data, nil
	}
	value, err := t.evaluate(f, env, data)
	if err != nil {
		return nil, f.asFailure(err)
	}
	return value, nil
}

// place applies ResultPath, which stores a result in the raw input.
func (f *frame) place(p *field, result any) (any, error) {
	switch {
	case !p.set:
		return result, nil
	case p.null:
		return f.input, nil
	}
	output, err := p.path.Set(f.input, result)
	if err != nil {
		return nil, f.failure(errorResultPath, "Unable to apply ReferencePath %s to input %s", p.path, document.String(f.input))
	}
	return output, nil
}

// leave applies OutputPath and the size limit of a state's output. Catch
// ignores both failures [recorded].
func (f *frame) leave(env *Env, value any) (any, error) {
	output, err := f.apply(env, &f.state.outputPath, value)
	if err == nil && !document.Fits(output, MaxData) {
		err = NewFailure(errorDataLimit, "The state/task '"+f.state.name+
			"' returned a result with a size exceeding the maximum number of bytes service limit.")
	}
	if err != nil {
		failed := f.asFailure(err)
		failed.uncaught = true
		return nil, failed
	}
	return output, nil
}

// finish applies ResultSelector, ResultPath and OutputPath to a state's result.
func (f *frame) finish(env *Env, result any) (any, error) {
	result, err := f.fill(env, f.state.resultSelector, result)
	if err != nil {
		return nil, err
	}
	if result, err = f.place(&f.state.resultPath, result); err != nil {
		return nil, err
	}
	return f.leave(env, result)
}

// seconds returns a literal or referenced duration in ms.
func (f *frame) seconds(env *Env, a *amount, what string, data any) (int64, error) {
	if a.path == nil {
		return a.value * 1000, nil
	}
	value, err := f.find(env, *a.path, data)
	if err != nil {
		return 0, f.failure(errorRuntime, "Invalid path '%s' : %s", a.path, err)
	}
	number, ok := value.(json.Number)
	if !ok {
		return 0, f.failure(errorRuntime, "The %s parameter does not reference a number: %s == %s", what, a.path, document.String(value))
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	switch {
	case err != nil:
		return 0, f.failure(errorRuntime, "The %s parameter cannot be parsed as a long value: %s == %s", what, a.path, number)
	case n < 0:
		return 0, f.failure(errorRuntime, "The %s parameter references a negative value: %s == %s", what, a.path, number)
	case n > maxWait:
		return 0, f.failure(errorRuntime, "The %s parameter is too large: %s == %s", what, a.path, number)
	}
	return n * 1000, nil
}

// contextObject returns the value of "$$" in the frame.
func (f *frame) contextObject(env *Env) any {
	if f.context != nil {
		return f.context
	}
	identity, e := &env.Identity, f.execution
	state := document.NewObject(
		document.Member{Key: "Name", Value: f.state.name},
		document.Member{Key: "EnteredTime", Value: formatTime(f.enteredAt)},
	)
	if f.state.canRetry() {
		state.Set("RetryCount", json.Number(strconv.FormatInt(f.retries, 10)))
	}
	object := document.NewObject(
		document.Member{Key: "Execution", Value: document.NewObject(
			document.Member{Key: "Id", Value: identity.ID},
			document.Member{Key: "Input", Value: e.input},
			document.Member{Key: "StartTime", Value: formatTime(e.started)},
			document.Member{Key: "Name", Value: identity.Name},
			document.Member{Key: "RoleArn", Value: identity.RoleARN},
			document.Member{Key: "RedriveCount", Value: json.Number("0")},
		)},
		document.Member{Key: "StateMachine", Value: document.NewObject(
			document.Member{Key: "Id", Value: identity.MachineID},
			document.Member{Key: "Name", Value: identity.MachineName},
		)},
		document.Member{Key: "State", Value: state},
	)
	if f.attempt != nil && f.attempt.token != "" {
		object.Set("Task", document.NewObject(document.Member{Key: "Token", Value: f.attempt.token}))
	}
	for outer := f; outer.parent != nil; outer = outer.parent {
		if outer.parent.state.kind == kindMap {
			object.Set("Map", mapItem(outer.index, outer.item))
			break
		}
	}
	f.context = object
	return object
}

func mapItem(index int, value any) any {
	return document.NewObject(document.Member{Key: "Item", Value: document.NewObject(
		document.Member{Key: "Index", Value: json.Number(strconv.Itoa(index))},
		document.Member{Key: "Value", Value: value},
	)})
}

func (s *state) canRetry() bool {
	return s.kind == kindTask || s.kind == kindParallel || s.kind == kindMap
}
