package access

import (
	"fmt"
	"strings"
)

// ParseTexts parses AUTH_TOKEN: one or more tokens, separated by commas. It ignores
// spaces around a token. It returns nil for an empty value, and an error for a token
// that CheckText refuses.
func ParseTexts(value string) ([]string, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	var texts []string
	for part := range strings.SplitSeq(value, ",") {
		text := strings.TrimSpace(part)
		if err := CheckText(text); err != nil {
			return nil, fmt.Errorf("AUTH_TOKEN: token %d: %w", len(texts)+1, err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// OfTexts returns a record for each token text, with the scopes of Ordinary. The records
// do not expire. Their names are auth-token-1, auth-token-2 and so on.
func OfTexts(texts []string, tenant, project string) []Token {
	tokens := make([]Token, len(texts))
	for i, text := range texts {
		tokens[i] = Full(fmt.Sprintf("auth-token-%d", i+1), text, tenant, project)
		tokens[i].Scopes = Ordinary()
	}
	return tokens
}
