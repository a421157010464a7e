package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// assignments parses the values NAME=VALUE of a repeatable flag into a map. A later value
// replaces an earlier one with the same name.
func assignments(flag string, texts []string) (map[string]string, error) {
	values := make(map[string]string, len(texts))
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, wrong("--%s: malformed value %q, want NAME=VALUE", flag, text)
		}
		values[name] = value
	}
	return values, nil
}

// exactly accepts one argument for each name, and requires the required flags.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("missing %s", names[len(args)])
		case len(args) > len(names) && cmd.HasSubCommands():
			return unknownCommand(cmd, args[0])
		case len(args) > len(names):
			return fmt.Errorf("unexpected argument %q, want %s", args[len(names)], strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
		return requiredFlags(cmd)
	}
}

// requiredFlags returns an error for missing required flags, before cobra reports its own.
func requiredFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if required := f.Annotations[cobra.BashCompOneRequiredFlag]; len(required) > 0 && !f.Changed {
			err = errors.Join(err, fmt.Errorf("missing --%s, want the %s", f.Name, strings.TrimSuffix(f.Usage, " (required)")))
		}
	})
	return err
}

// require marks a flag as required.
func require(c *cobra.Command, flag string) {
	must(c.MarkFlagRequired(flag))
}

// atLeastOne requires one or more arguments.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
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
	hint := didYouMean(name, names)
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

// wrongFlag describes an error of the flag parser.
func wrongFlag(cmd *cobra.Command, err error) error {
	unknown, isUnknown := errors.AsType[*pflag.NotExistError](err)
	missing, isMissing := errors.AsType[*pflag.ValueRequiredError](err)
	invalid, isInvalid := errors.AsType[*pflag.InvalidValueError](err)
	switch {
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
		return fmt.Errorf("unknown flag %s%s", name, didYouMean(name, names))
	case isMissing:
		return fmt.Errorf("--%s: missing value, want %s", missing.GetFlag().Name, wantOf(missing.GetFlag()))
	case isInvalid:
		return fmt.Errorf("--%s: malformed value %q, want %s", invalid.GetFlag().Name, invalid.GetValue(), wantOf(invalid.GetFlag()))
	}
	return err
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

// choice returns the value of an enumeration that equals value regardless of case.
func choice(name, value string, values []string) (string, error) {
	for _, v := range values {
		if strings.EqualFold(v, value) {
			return v, nil
		}
	}
	return "", wrong("%s: unknown value %q%s, want one of %s", name, value, didYouMean(value, values), strings.Join(values, ", "))
}

// didYouMean returns a suggestion of the most similar name, to append to an error, or "".
func didYouMean(name string, names []string) string {
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
