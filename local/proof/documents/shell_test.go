package documents_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// commands splits shell text into simple commands, including those in $(...). It handles
// quotes, comments, continued lines, pipes and redirections. It drops the files of
// redirections.
func commands(text string) [][]string {
	var all [][]string
	var words []string
	var word strings.Builder
	started := false
	endWord := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	endCommand := func() {
		endWord()
		if i := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "<>") }); i >= 0 {
			words = words[:i]
		}
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	text = strings.ReplaceAll(text, "\\\n", " ")
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case rest[0] == '\'' || rest[0] == '"':
			length := strings.IndexByte(rest[1:], rest[0])
			if length < 0 {
				length = len(rest) - 1
			}
			quoted := rest[1 : 1+length]
			if _, inner, found := strings.Cut(quoted, "$("); found && rest[0] == '"' {
				all = append(all, commands(inner[:max(strings.LastIndexByte(inner, ')'), 0)])...)
			}
			word.WriteString(quoted)
			started, i = true, i+length+1
		case rest[0] == '#' && !started:
			if length := strings.IndexByte(rest, '\n'); length >= 0 {
				i += length - 1
			} else {
				i = len(text)
			}
		case strings.HasPrefix(rest, "$("):
			inner := rest[2:]
			if end := strings.LastIndexByte(inner, ')'); end >= 0 {
				inner = inner[:end]
			}
			all = append(all, commands(inner)...)
			word.WriteString("$()")
			started, i = true, i+2+len(inner)
		case strings.ContainsRune(" \t", rune(rest[0])):
			endWord()
		case strings.ContainsRune("\n;|&()", rune(rest[0])):
			endCommand()
		case rest[0] == '<' || rest[0] == '>':
			endWord()
			word.WriteByte(rest[0])
			started = true
		default:
			word.WriteByte(rest[0])
			started = true
		}
	}
	endCommand()
	return all
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"make run   # all of it\nmake test":       {"make run", "make test"},
		"a \\\n  -b 'c d' | e >f":                 {"a -b c d", "e"},
		"T=$(curl x |\n sed y)\nsortie z \"$T\"":  {"curl x", "sed y", "T=$()", "sortie z $T"},
		"make d F=\"-c a=$(aws b --text)\"":       {"aws b --text", "make d F=-c a=$(aws b --text)"},
		"put x <y.json # {\"tokens\": [\"…\"]}\n": {"put x"},
	} {
		var got []string
		for _, words := range commands(text) {
			got = append(got, strings.Join(words, " "))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

var (
	quoted  = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	heredoc = regexp.MustCompile(`<<'?([A-Z]+)`)
)

// hasComment reports whether a block has a comment outside of its here-documents.
func hasComment(text string) bool {
	end := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if end != "" {
			if line == end {
				end = ""
			}
			continue
		}
		if strings.Contains(" "+quoted.ReplaceAllString(line, ""), " #") {
			return true
		}
		if found := heredoc.FindStringSubmatch(line); found != nil {
			end = found[1]
		}
	}
	return false
}

func TestCommentsAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"make run # all\n": true, "# all\nmake run\n": true, "cat <<'END'\n# all\nEND\n": false, "cat <<END\nEND\na # b\n": true, "echo '# a' \"# b\" ${#A} a#b\n": false,
	} {
		if got := hasComment(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}
