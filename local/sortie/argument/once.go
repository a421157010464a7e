package argument

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// repeatedError is another value of a flag that takes one.
type repeatedError struct{ first, second string }

func (e repeatedError) Error() string {
	return fmt.Sprintf("given twice, as %q and %q, want one value", e.first, e.second)
}

// once is the value of a flag that takes one value. It refuses another one, which would
// silently replace the first.
type once struct {
	pflag.Value
	// given is the text of the command line, if there was one.
	given *string
}

// Set stores the value. The same value may be repeated.
func (o *once) Set(text string) error {
	if o.given != nil && *o.given != text {
		return repeatedError{*o.given, text}
	}
	o.given = &text
	return o.Value.Set(text)
}

// takeOnce makes the flags of a command refuse a second value, if they take one.
func takeOnce(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "string", "int", "int64", "uint64", "float64", "duration":
			if _, wrapped := f.Value.(*once); !wrapped {
				f.Value = &once{Value: f.Value}
			}
		}
	})
}
