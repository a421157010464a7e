package tinymodel

import (
	"fmt"
	"math/rand/v2"
)

// tokenKind is the kind of a token, with its number in GGUF.
type tokenKind int32

const (
	word    tokenKind = 1
	unknown tokenKind = 2
	control tokenKind = 3
	octet   tokenKind = 6
)

type token struct {
	text string
	kind tokenKind
}

// The numbers of the special tokens.
const (
	unknownToken = 0
	beginToken   = 1
	endToken     = 2
)

// space is the spelling of a space in tokens, in both kinds of files.
const space = "▁"

// vocabularySize is the number of tokens.
const vocabularySize = 512

// template is the chat template that formats a conversation as a prompt.
const template = `{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }}
{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`

// vocabulary returns three special tokens, one token for each byte, the space, and made-up
// words with a leading space. No token occurs inside the text of another, so prompts are split
// into bytes.
func vocabulary() []token {
	tokens := []token{{"<unk>", unknown}, {"<s>", control}, {"</s>", control}}
	for b := range 256 {
		tokens = append(tokens, token{fmt.Sprintf("<0x%02X>", b), octet})
	}
	tokens = append(tokens, token{space, word})
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // repeatable on purpose
	letter := func(of string) string { return of[random.IntN(len(of)):][:1] }
	known := map[string]bool{}
	for len(tokens) < vocabularySize {
		text := letter(consonants) + letter(vowels) + letter(consonants) + letter(vowels)
		if random.IntN(2) == 0 {
			text += letter(consonants)
		}
		if !known[text] {
			known[text] = true
			tokens = append(tokens, token{space + text, word})
		}
	}
	return tokens
}
