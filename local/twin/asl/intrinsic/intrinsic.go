// Package intrinsic is the 18 intrinsic functions of the States Language's
// JSONPath dialect: States.Format, States.MathAdd and so on, nested up to ten
// deep.
//
// Parse refuses unknown functions, wrong numbers of arguments and unknown
// escapes, so that a definition that was accepted fails only for its data. What
// a function does with data that it does not take is an *Error, which Step
// Functions names States.IntrinsicFailure. Randomness is an argument.
package intrinsic

import (
	"fmt"

	"github.com/sortie-dev/sortie/local/twin/asl/path"
)

// MaxDepth is how deep calls may be nested (AWS: 10).
const MaxDepth = 10

// Prefix is what every call begins with.
const Prefix = "States."

// Call is a parsed invocation. It is immutable.
type Call struct {
	name     string
	function function
	args     []arg
}

// Env is what a call is evaluated in.
type Env struct {
	// Find resolves a path that is an argument. Its error is Eval's.
	Find func(path.Path) (any, error)
	// Random gives 64 random bits; States.UUID and States.MathRandom use it.
	Random func() uint64
}

// Error is the failure of a function on its data.
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

// arg is one argument. raw is a string literal between its quotes, before
// escapes are taken out, which States.Format needs.
type arg struct {
	kind    argKind
	literal any
	raw     string
	path    path.Path
	call    *Call
}

// function is one of the 18: its number of arguments (most < 0: any) and what
// it does. args are evaluated; template is the first one before its escapes are
// taken out where it is a literal.
type function struct {
	least, most int
	apply       func(env Env, args []any, template string) (any, error)
}

// Eval calls the function. The error is an *Error or Find's.
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
		return function{}, fmt.Errorf("there is no function %s", name)
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
