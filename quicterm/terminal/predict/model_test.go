package predict

import "testing"

// Questions for secrets are known in some languages.
func TestQuestionsForSecrets(t *testing.T) {
	for text, want := range map[string]bool{
		"Password:": true, "password for anna:": true, "Enter the PIN>": true, "Passwort：": true, "OTP?": true, "TOTP code:": true,
		"Пароль:": true, "パスワード：": true, "PassCode:": true, "pin of anna@host:": true,
		"Password": false, "Name:": false, "spin:": false, "decode?": false, "Password? yes:": false, "Password:?": false, "": false, "?": false,
		"pin2:": false, "encoder:": false, "crypto:": false, "pin é:": true,
	} {
		if got := endsInQuestion(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
