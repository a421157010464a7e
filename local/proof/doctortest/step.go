package doctortest

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/command"
)

// recorded has one command of another program per line: its words, its arguments in capitals
// (optional ones in brackets) and its flags. A flag with "=" is a variable of make. They were
// compared with aws 1.45 ("logs tail" and "sso login" are of aws 2), the sources of flyctl and
// the documentation of wrangler 4.
//
//go:embed commands.txt
var recorded string

// common are flags that all commands of aws accept.
var common = []string{"--region", "--query", "--output"}

// optional are the flags of jq that some filters need.
var optional = []string{"-n", "-r", "--rawfile"}

var argument = regexp.MustCompile(`^\[?[A-Z]+\]?$`)

// CheckCommand returns an error unless the words are a valid command of sortie or a recorded
// command, with valid arguments and flags.
func CheckCommand(words []string) error {
	if len(words) == 0 {
		return nil
	}
	if strings.TrimPrefix(words[0], "bin/") == "sortie" {
		return checkSortie(words[1:])
	}
	for line := range strings.Lines(recorded) {
		want := strings.Fields(line)
		if n := slices.IndexFunc(want, isNoName); n >= 0 && len(words) >= n && slices.Equal(words[:n], want[:n]) {
			return checkArguments(words[n:], want[n:], words[0])
		}
		if slices.Equal(words[:min(len(words), len(want))], want) && !slices.ContainsFunc(want, isNoName) {
			return checkArguments(words[len(want):], nil, words[0])
		}
	}
	return fmt.Errorf("%s: got no such command in commands.txt", strings.Join(words, " "))
}

// isNoName reports whether a word of a recorded command is an argument or a flag.
func isNoName(word string) bool {
	return argument.MatchString(word) || strings.HasPrefix(word, "-") || strings.HasSuffix(word, "=")
}

// checkArguments compares the given arguments and flags with the arguments and flags of the
// recorded command.
func checkArguments(given, want []string, program string) error {
	allowed := slices.Clone(want)
	if program == "aws" {
		allowed = append(allowed, common...)
	}
	arguments := 0
	for i := 0; i < len(given); i++ {
		word := given[i]
		name, _, variable := strings.Cut(word, "=")
		switch {
		case variable && !strings.HasPrefix(word, "-") && slices.Contains(want, name+"="):
			want = slices.DeleteFunc(slices.Clone(want), func(w string) bool { return w == name+"=" })
		case strings.HasPrefix(word, "-") && !slices.Contains(allowed, word):
			return fmt.Errorf("%s: got no such flag", word)
		case strings.HasPrefix(word, "-"):
			want = slices.DeleteFunc(slices.Clone(want), func(w string) bool { return w == word })
			if i+1 < len(given) && !strings.HasPrefix(given[i+1], "-") && !slices.Contains([]string{"--json", "--force", "-n", "-r"}, word) {
				i++
			}
		default:
			arguments++
		}
	}
	least, most := 0, 0
	for _, w := range want {
		switch {
		case strings.HasPrefix(w, "["):
			most++
		case argument.MatchString(w):
			least, most = least+1, most+1
		case !slices.Contains(optional, w):
			return fmt.Errorf("%s: got no %s", program, w)
		}
	}
	if arguments < least || arguments > most {
		return fmt.Errorf("%s: got %d arguments, want %d to %d", program, arguments, least, most)
	}
	return nil
}

// checkSortie parses a command line of sortie with the command tree.
func checkSortie(words []string) error {
	c, rest, err := command.Tree().Find(words)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		return fmt.Errorf("sortie %s: %w", strings.Join(words, " "), err)
	}
	return nil
}

var (
	// separator splits a line into steps, and a step into commands.
	separator = regexp.MustCompile(` && | \| |; |, | then |: | <`)
	// substituted matches a command substitution in an argument.
	substituted = regexp.MustCompile(`\$\(([^()]*)\)`)
	// program matches the beginning of a command.
	program = regexp.MustCompile(`(^| )(aws (?:[a-z0-9]+ [a-z-]+|configure)|fly [a-z]+|npx wrangler|infra/\.cdk/\S+|(?:bin/)?sortie [a-z]+|make (?:synth|deploy)|jq) ?`)
)

// CheckSteps checks all commands in a finding's ToDo.
func CheckSteps(toDo string) error {
	for _, inner := range substituted.FindAllStringSubmatch(toDo, -1) {
		if err := CheckCommand(strings.Fields(inner[1])); err != nil {
			return fmt.Errorf("%q: %w", inner[1], err)
		}
	}
	toDo = substituted.ReplaceAllString(toDo, "SUBSTITUTED")
	for _, step := range separator.Split(toDo, -1) {
		at := program.FindStringIndex(step)
		if at == nil {
			continue
		}
		words := strings.Fields(step[at[0]:])
		if words[0] == "jq" && strings.HasPrefix(step, "jq -n") { // its filter has spaces nowhere
			words = strings.Fields(step)
		}
		for i, word := range words { // prose follows a command of a sentence
			if slices.Contains([]string{"with", "which", "and", "or", "until"}, word) {
				words = words[:i]
				break
			}
		}
		if err := CheckCommand(words); err != nil {
			return fmt.Errorf("%q: %w", step, err)
		}
	}
	return nil
}
