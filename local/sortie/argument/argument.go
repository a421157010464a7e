// Package argument checks and completes the arguments and flags of commands.
package argument

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Error is a mistake in an argument or a flag.
type Error struct{ error }

// Unwrap returns the description of the mistake.
func (e Error) Unwrap() error { return e.error }

// Invalid returns an Error with a formatted description.
func Invalid(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }

// Assignments parses the values NAME=VALUE of a repeatable flag into a map. A later value
// replaces an earlier one with the same name.
func Assignments(flag string, texts []string) (map[string]string, error) {
	values := make(map[string]string, len(texts))
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, Invalid("--%s: malformed value %q, want NAME=VALUE", flag, text)
		}
		values[name] = value
	}
	return values, nil
}

// Inputs returns the values of --input. The server reads each text as the declared type.
func Inputs(texts []string) (map[string]json.RawMessage, error) {
	given, err := Assignments("input", texts)
	if len(given) == 0 {
		return nil, err
	}
	values := make(map[string]json.RawMessage, len(given))
	for name, text := range given {
		if values[name], err = json.Marshal(text); err != nil {
			return nil, fmt.Errorf("cannot encode the input %s: %w", name, err)
		}
	}
	return values, nil
}

// Exactly accepts one argument for each name, and requires the required flags. An empty
// argument, such as that of a variable without a value, is missing.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, name := range names {
			if i >= len(args) || args[i] == "" {
				return fmt.Errorf("missing %s", name)
			}
		}
		switch {
		case len(args) > len(names) && cmd.HasSubCommands():
			return unknownCommand(cmd, args[0])
		case len(args) > len(names):
			return fmt.Errorf("unexpected argument %q, want %s", args[len(names)], strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
		return Required(cmd)
	}
}

// Required returns an error for missing required flags, before cobra reports its own.
func Required(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if required := f.Annotations[cobra.BashCompOneRequiredFlag]; len(required) > 0 && !f.Changed {
			err = errors.Join(err, fmt.Errorf("missing --%s, want the %s", f.Name, strings.TrimSuffix(f.Usage, " (required)")))
		}
	})
	return err
}

// Require marks a flag as required.
func Require(c *cobra.Command, flag string) {
	Must(c.MarkFlagRequired(flag))
}

// AtLeastOne requires one or more arguments.
func AtLeastOne(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 || slices.Contains(args, "") {
			return fmt.Errorf("missing %s", name)
		}
		return nil
	}
}

// others are commands of other programs, with those that do the same here.
var others = map[string]string{
	"ls": "runs or jobs list", "ps": "runs", "list": "runs or jobs list", "ui": "open", "console": "open", "dashboard": "open",
	"login": "tokens add, whose token SORTIE_TOKEN sends", "start": "dev or run", "serve": "dev", "server": "dev", "up": "dev",
	"stop": "cancel", "kill": "cancel", "rerun": "retry", "log": "logs", "show": "status", "describe": "explain", "why": "explain",
	"exec": "run", "apply": "jobs apply", "job": "jobs", "schedule": "jobs apply", "cron": "jobs apply", "init": "jobs init",
}

// unknownCommand returns an error for an unknown command name. Unless cmd is the root, the
// error lists the commands of cmd.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := Similar(name, names)
	if other := others[name]; other != "" && !cmd.HasParent() {
		hint = " (did you mean " + other + "?)"
	}
	if cmd.HasParent() {
		name = strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") + " " + name
		if hint == "" {
			hint = ", want " + strings.Join(names, ", ")
		}
	}
	return fmt.Errorf("unknown command %q%s", name, hint)
}

// FlagError describes an error of the flag parser.
func FlagError(cmd *cobra.Command, err error) error {
	unknown, isUnknown := errors.AsType[*pflag.NotExistError](err)
	missing, isMissing := errors.AsType[*pflag.ValueRequiredError](err)
	invalid, isInvalid := errors.AsType[*pflag.InvalidValueError](err)
	repeated, isRepeated := errors.AsType[repeatedError](err)
	switch {
	case isRepeated && isInvalid:
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, repeated)
	case isUnknown && cmd.HasSubCommands() && cmd.Flags().NArg() > 0:
		return unknownCommand(cmd, cmd.Flags().Arg(0)) // the flags of an unknown command are unknown, too
	case isUnknown && unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("unknown flag -%s", unknown.GetSpecifiedName())
	case isUnknown:
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		name := "--" + unknown.GetSpecifiedName()
		return fmt.Errorf("unknown flag %s%s", name, cmp.Or(Similar(name, names), synonym(cmd, unknown.GetSpecifiedName()), elsewhere(cmd, unknown.GetSpecifiedName())))
	case isMissing:
		return fmt.Errorf("--%s: missing value, want %s", missing.GetFlag().Name, wantOf(missing.GetFlag()))
	case isInvalid:
		return fmt.Errorf("--%s: malformed value %q, want %s", invalid.GetFlag().Name, invalid.GetValue(), wantOf(invalid.GetFlag()))
	}
	return err
}

// synonyms are flags of Sortie by those that other programs have in their place.
var synonyms = map[string]string{
	"port": "addr", "listen": "addr", "bind": "addr", "host": "addr", "address": "addr", "data-dir": "data",
}

// synonym returns a hint to the flag of cmd that has another name elsewhere, or "".
func synonym(cmd *cobra.Command, flag string) string {
	if f := cmd.Flags().Lookup(synonyms[flag]); f != nil && !f.Hidden {
		return fmt.Sprintf(", did you mean --%s (%s)?", f.Name, f.Usage)
	}
	return ""
}

// elsewhere returns a hint to the commands that have a flag which cmd has not, or "".
func elsewhere(cmd *cobra.Command, flag string) string {
	var having []string
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if f := c.Flags().Lookup(flag); f != nil && !f.Hidden && c.IsAvailableCommand() && c != cmd {
			having = append(having, strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "))
		}
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	visit(cmd.Root())
	if len(having) == 0 {
		return ""
	}
	slices.Sort(having)
	const most = 4
	list := strings.Join(having[:min(len(having), most)], ", ")
	if len(having) > most {
		list += " and others"
	}
	hint := ", want it after a command that has it: " + list
	if flag == "data" && cmd.Flags().Lookup("url") != nil {
		hint += "; this one finds the servers of this machine, or takes --url and --token-file"
	}
	return hint
}

// wantOf describes the values of a flag.
func wantOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64", "uint64":
		return "a whole number"
	case "float64":
		return "a number"
	case "duration":
		return "a duration such as 90s"
	case "bool":
		return "true or false"
	}
	return "a text"
}

// Choice returns the value of an enumeration that equals value regardless of case.
func Choice(name, value string, values []string) (string, error) {
	for _, v := range values {
		if strings.EqualFold(v, value) {
			return v, nil
		}
	}
	return "", Invalid("%s: unknown value %q%s, want one of %s", name, value, Similar(value, values), strings.Join(values, ", "))
}

// Similar returns a suggestion of the most similar name, to append to an error, or "".
func Similar(name string, names []string) string {
	best, distance := "", min(max(2, len(name)/3), len(name)-1)+1
	for _, n := range slices.Sorted(slices.Values(names)) {
		if d := editDistance(strings.ToLower(name), strings.ToLower(n)); d < distance {
			best, distance = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// editDistance returns the number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// usage returns the check of the arguments that the usage line of a command shows before
// its flags.
func usage(use string) cobra.PositionalArgs {
	var names []string
	for _, word := range strings.Fields(use)[1:] {
		if strings.HasPrefix(word, "-") {
			break
		}
		if name, more := strings.CutSuffix(word, "..."); more {
			return AtLeastOne(name)
		}
		names = append(names, word)
	}
	return Exactly(names...)
}

// Check sets the checks of the arguments of a command and of those below it, where
// they have none. Their flags with one value refuse another one.
func Check(c *cobra.Command) {
	takeOnce(c)
	if c.Args == nil && c.RunE != nil {
		c.Args = usage(c.Use)
	}
	for _, of := range c.Commands() {
		Check(of)
	}
}

// Must panics for an error that only a mistake of the program causes.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
