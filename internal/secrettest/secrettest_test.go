package secrettest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
)

func TestC54_LeaksAreFound(t *testing.T) {
	c := Planted()
	password := c.Password.Reveal()
	quoted, err := json.Marshal(map[string]string{"p": password})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"x " + password + " y", url.QueryEscape(password), url.UserPassword("u", password).String(), string(quoted),
		fmt.Sprintf("%q", password), fmt.Sprintf("%x", password),
		base64.StdEncoding.EncodeToString([]byte(password)), base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + password)),
		"http://planted-user:Pl4nted",
	} {
		if len(Leaks(text, c)) == 0 {
			t.Errorf("not found in %s", text)
		}
	}
	if leaks := Leaks(fmt.Sprintf("%v %+v planted-user http://***@h", *c, c.Password), c); len(leaks) > 0 {
		t.Errorf("found where there is none: %v", leaks)
	}
}
