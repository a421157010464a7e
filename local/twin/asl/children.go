package asl

import (
	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// startChildren starts a Parallel or a Map.
func (x *stepper) startChildren(f *frame, data any) (outcome, bool) {
	c, err := x.children(f, data)
	if err != nil {
		return outcome{failure: f.asFailure(err)}, false
	}
	x.events++ // ParallelStateStarted or MapStateStarted
	c.results, c.ended, c.left = make([]any, c.total), make([]bool, c.total), c.total
	f.children, f.waiting = c, waitChildren
	if c.total == 0 {
		return x.collect(f), false
	}
	for c.next < c.total && (c.limit == 0 || c.next < c.limit) {
		if err := x.startChild(f); err != nil {
			return outcome{failure: f.asFailure(err)}, false
		}
	}
	return outcome{}, true
}

// children returns the branches or items of a state, not yet started.
func (x *stepper) children(f *frame, data any) (*children, error) {
	if f.state.kind == kindParallel {
		return &children{total: len(f.state.branches)}, nil
	}
	items, err := f.apply(x.env, &f.state.itemsPath, data)
	if err != nil {
		return nil, err
	}
	list, ok := items.([]any)
	if !ok {
		return nil, f.failure(errorRuntime, "Reference path \"%s\" must point to array.", f.itemsReference())
	}
	limit, err := f.seconds(x.env, &f.state.maxConcurrency, "MaxConcurrencyPath", data)
	if err != nil {
		return nil, err
	}
	return &children{items: list, total: len(list), limit: int(limit / 1000)}, nil
}

func (f *frame) itemsReference() string {
	if f.state.itemsPath.set {
		return f.state.itemsPath.path.String()
	}
	return "$"
}

// startChild starts the next branch or item.
func (x *stepper) startChild(f *frame) error {
	c := f.children
	child := &frame{execution: f.execution, parent: f, index: c.next}
	c.next++
	c.active = append(c.active, child)
	input, err := x.childInput(f, child)
	if err != nil {
		return err
	}
	if f.state.kind == kindMap {
		x.events++ // MapIterationStarted
	}
	x.push(work{frame: child, enter: child.graph.states[child.graph.startAt], input: input})
	return nil
}

func (x *stepper) childInput(f, child *frame) (any, error) {
	data, err := f.effective(x.env)
	if err != nil {
		return nil, err
	}
	if f.state.kind == kindParallel {
		child.graph = f.state.branches[child.index]
		return f.fill(x.env, f.state.parameters, data)
	}
	child.graph, child.item = f.state.branches[0], f.children.items[child.index]
	if f.state.itemSelector == nil {
		return child.item, nil
	}
	outer, _ := f.contextObject(x.env).(*document.Object)
	defer func() { f.context = outer }()
	f.context = outer.With("Map", mapItem(child.index, child.item))
	return f.fill(x.env, f.state.itemSelector, data)
}

// childEnded stores a child's result and starts the next child or ends the
// state.
func (x *stepper) childEnded(f, child *frame, output any) (work, bool) {
	c := f.children
	c.results[child.index], c.ended[child.index] = output, true
	c.left--
	for i, other := range c.active {
		if other == child {
			c.active = append(c.active[:i], c.active[i+1:]...)
			break
		}
	}
	if f.state.kind == kindMap {
		x.events++ // MapIterationSucceeded
	}
	if c.left == 0 {
		return work{frame: f, outcome: x.collect(f)}, true
	}
	if c.next < c.total {
		if err := x.startChild(f); err != nil {
			return work{frame: f, outcome: outcome{failure: f.asFailure(err)}}, true
		}
	}
	return work{}, false
}

// collect returns the outcome of a Parallel or Map whose children have all
// ended.
func (x *stepper) collect(f *frame) outcome {
	x.events++ // ParallelStateSucceeded or MapStateSucceeded
	output, err := f.finish(x.env, f.children.results)
	if err != nil {
		return outcome{failure: f.asFailure(err)}
	}
	return outcome{output: output}
}
