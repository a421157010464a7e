package inference

import (
	"fmt"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// Answers is the maximum number of answers of a request.
const Answers = 16

// ChoiceEnd is the end of an answer of a request that is not the last one. The answers follow each
// other in the stream, so what follows belongs to the next one.
type ChoiceEnd struct {
	// Index counts the answers from 0.
	Index  int    `json:"index"`
	Finish string `json:"finish_reason"`
}

// Answers returns the number of answers: Choices for each prompt.
func (q Request) Answers() int { return max(q.Choices, 1) * max(len(q.Prompts), 1) }

// One returns the request for an answer, counted from 0. The answers for a prompt follow each other.
// A seed is increased for each of them, because the same one would repeat the answer.
func (q Request) One(answer int) Request {
	choices := max(q.Choices, 1)
	if len(q.Prompts) > 0 {
		q.Prompt = q.Prompts[answer/choices]
	}
	q.Prompts, q.Choices = nil, 0
	if n := int64(answer % choices); q.Seed != nil && n > 0 {
		q.Seed = new(*q.Seed + n)
	}
	return q
}

// First reports whether an answer is the first one of its prompt, whose tokens count.
func (q Request) First(answer int) bool { return answer%max(q.Choices, 1) == 0 }

// LongestOf returns the estimated tokens of the longest prompt.
func (q Request) LongestOf() (tokens int) {
	for i := range max(len(q.Prompts), 1) {
		tokens = max(tokens, q.One(i*max(q.Choices, 1)).PromptTokens())
	}
	return tokens
}

func (q Request) checkAnswers() error {
	switch {
	case q.Choices < 0 || q.Choices > Answers:
		return invalidParams("n", "%d is out of range, want 1 to %d", q.Choices, Answers)
	case len(q.Prompts) > Answers:
		return invalidParams("prompts", "%d prompts, want 1 to %d", len(q.Prompts), Answers)
	case q.Answers() > Answers:
		return invalidParams("n", "%d answers for each of %d prompts, want at most %d altogether", q.Choices, len(q.Prompts), Answers)
	}
	for i, prompt := range q.Prompts {
		if prompt == "" || !utf8.ValidString(prompt) {
			return fault.Invalid(fmt.Sprintf("prompts.%d", i), "empty text or no UTF-8, want a text")
		}
	}
	return nil
}

// MostTokens returns the maximum number of tokens of each answer: those of all answers together, and
// their probabilities, are limited.
func (q Request) MostTokens() int {
	most := MaxTokens
	if o := q.Options; o != nil && o.Logprobs != nil {
		most = min(most, Logprobs/(1+*o.Logprobs))
	}
	return most / q.Answers()
}
