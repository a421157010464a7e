package scripted

import (
	"errors"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/asl"
	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// script holds the results of tasks.
type script struct {
	byState map[string][]*document.Object
	any     []*document.Object // results without a state
}

func newScript(request *document.Object) (*script, error) {
	s := &script{byState: map[string][]*document.Object{}}
	value, _ := request.Get("task_results")
	list, ok := value.([]any)
	if !ok && value != nil {
		return nil, errors.New("task_results: want an array")
	}
	for _, item := range list {
		result, ok := item.(*document.Object)
		if !ok {
			return nil, errors.New("task_results: want an array of objects")
		}
		state, _ := result.Get("state")
		if name, ok := state.(string); ok {
			s.byState[name] = append(s.byState[name], result)
		} else {
			s.any = append(s.any, result)
		}
	}
	return s, nil
}

// next removes and returns the next result for the state, or nil if no result is left.
func (s *script) next(state string) *document.Object {
	if list := s.byState[state]; len(list) > 0 {
		s.byState[state] = list[1:]
		return list[0]
	}
	if len(s.any) > 0 {
		result := s.any[0]
		s.any = s.any[1:]
		return result
	}
	return nil
}

// answer returns a result to a call, through the token if the state waits for
// one.
func (s *script) answer(env asl.Env, execution *asl.Execution, call asl.Invocation) []asl.Invocation {
	result := s.next(call.State)
	silent := result == nil
	if !silent {
		event, _ := result.Get("event")
		name, _ := event.(string)
		silent = strings.HasSuffix(name, "TimedOut")
	}
	if call.Callback {
		execution.Returned(env, call.Attempt, nil)
	}
	if silent {
		return nil
	}
	var more []asl.Invocation
	output, succeeded := result.Get("output")
	switch {
	case succeeded && call.Callback:
		more, _ = execution.Succeed(env, call.Token, output)
	case succeeded:
		more, _ = execution.Returned(env, call.Attempt, output)
	case call.Callback:
		more, _ = execution.Fail(env, call.Token, failure(result))
	default:
		more, _ = execution.Failed(env, call.Attempt, failure(result))
	}
	return more
}

// failure returns the result's error. A cause that is an object becomes its
// text.
func failure(result *document.Object) *asl.Failure {
	text := func(key string) *string {
		value, _ := result.Get(key)
		if value == nil {
			return nil
		}
		s, ok := value.(string)
		if !ok {
			s = document.String(value)
		}
		return &s
	}
	return &asl.Failure{Code: text("error"), Cause: text("cause")}
}
