package job

import (
	"encoding/json"
	"fmt"
)

// secretReference is the document form of a variable whose value is a secret.
type secretReference struct {
	SecretRef string `json:"secretRef"`
}

// MarshalJSON returns the document form of the variable.
func (v Variable) MarshalJSON() ([]byte, error) {
	if v.SecretRef != "" {
		return json.Marshal(secretReference{v.SecretRef})
	}
	return json.Marshal(v.Value)
}

// UnmarshalJSON reads the document form of a variable.
func (v *Variable) UnmarshalJSON(text []byte) error {
	*v = Variable{}
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &v.Value)
	}
	var secret secretReference
	if err := json.Unmarshal(text, &secret); err != nil {
		return fmt.Errorf("environment variable: %w", err)
	}
	v.SecretRef = secret.SecretRef
	return nil
}
