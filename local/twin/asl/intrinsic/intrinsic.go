// Package intrinsic implements the 18 intrinsic functions of the States
// Language's JSONPath dialect: States.Format, States.MathAdd and so on, nested
// up to ten levels.
//
// Parse refuses unknown functions, wrong numbers of arguments and unknown
// escapes, so that a valid definition fails only for its data. A function that
// cannot process its data returns an *Error, which Step Functions names
// States.IntrinsicFailure. Randomness is an argument.
package intrinsic

import (
	"fmt"

	"github.com/sortie-dev/sortie/local/twin/asl/path"
)

// MaxDepth limits the nesting of calls (AWS: 10).
const MaxDepth = 10

// Prefix begins every function name.
const Prefix = "States."

// Call is a parsed invocation. It is immutable.
type Call struct {
	name     string
	function function
	args     []arg
}

// Env provides paths and randomness to a call.
type Env struct {
	// Find resolves a path argument. Eval returns its error.
	Find func(path.Path) (any, error)
	// Random returns 64 random bits for States.UUID and States.MathRandom.
	Random func() uint64
}

// Error is the failure of a function for its data.
type Error struct {
	Function string // such as "States.MathAdd"
	What     string
}

func (e *Error) Error() string { return e.Function + ": " + e.What }

type argKind int

const (
	literalArg argKind = iota
	pathArg
	callArg
)

// arg is an argument. raw is the text of a string literal with its escapes,
// which States.Format needs.
type arg struct {
	kind    argKind
	literal any
	raw     string
	path    path.Path
	call    *Call
}

// function is an intrinsic function. It takes least to most arguments; a negative most means no
// limit. apply receives the evaluated args. If the first argument is a literal, template is its
// text with escapes.
type function struct {
	least, most int
	apply       func(env Env, args []any, template string) (any, error)
}

// Eval evaluates the call. The error is an *Error, or an error of Find.
func (c *Call) Eval(env Env) (any, error) {
	args := make([]any, len(c.args))
	template := ""
	for i, a := range c.args {
		var err error
		switch a.kind {
		case literalArg:
			args[i] = a.literal
		case pathArg:
			args[i], err = env.Find(a.path)
		case callArg:
			args[i], err = a.call.Eval(env)
		}
		if err != nil {
			return nil, err
		}
		if text, ok := args[i].(string); ok && i == 0 {
			if template = text; a.kind == literalArg {
				template = a.raw
			}
		}
	}
	result, err := c.function.apply(env, args, template)
	if err != nil {
		return nil, &Error{Function: c.name, What: err.Error()}
	}
	return result, nil
}

// Paths calls yield with every path among the arguments.
func (c *Call) Paths(yield func(path.Path)) {
	for _, a := range c.args {
		switch a.kind {
		case literalArg:
		case pathArg:
			yield(a.path)
		case callArg:
			a.call.Paths(yield)
		}
	}
}

func lookUp(name string) (function, error) {
	f, ok := functions()[name]
	if !ok {
		return function{}, fmt.Errorf("unknown function %s", name)
	}
	return f, nil
}

func functions() map[string]function {
	return map[string]function{
		"States.Format":         {1, -1, format},
		"States.StringToJson":   {1, 1, stringToJSON},
		"States.JsonToString":   {1, 1, jsonToString},
		"States.Array":          {0, -1, array},
		"States.ArrayPartition": {2, 2, arrayPartition},
		"States.ArrayContains":  {2, 2, arrayContains},
		"States.ArrayRange":     {3, 3, arrayRange},
		"States.ArrayGetItem":   {2, 2, arrayGetItem},
		"States.ArrayLength":    {1, 1, arrayLength},
		"States.ArrayUnique":    {1, 1, arrayUnique},
		"States.Base64Encode":   {1, 1, base64Encode},
		"States.Base64Decode":   {1, 1, base64Decode},
		"States.Hash":           {2, 2, hash},
		"States.JsonMerge":      {3, 3, jsonMerge},
		"States.MathRandom":     {2, 3, mathRandom},
		"States.MathAdd":        {2, 2, mathAdd},
		"States.StringSplit":    {2, 2, stringSplit},
		"States.UUID":           {0, 0, uuidV4},
	}
}
