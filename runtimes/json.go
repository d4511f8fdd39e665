package runtimes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// decodeJSON reads a JSON file into v. The error names the place and not the text there.
func decodeJSON(file string, content []byte, v any) error {
	content = bytes.TrimPrefix(content, []byte("\uFEFF")) // dockerd skips it too
	err := json.Unmarshal(content, v)
	if err == nil {
		return nil
	}
	var offset int64
	what := "it is not valid JSON"
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset, what = syntax.Offset, syntax.Error()
	case errors.As(err, &kind):
		offset, what = kind.Offset, fmt.Sprintf("the key %q holds a %s where a %s belongs", kind.Field, kind.Value, kind.Type)
	}
	before := content[:min(max(offset, 0), int64(len(content)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Errorf("reading %s as JSON: line %d, column %d: %s; correct it there", file, line, column, what)
}
