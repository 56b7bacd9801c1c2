//go:build cgo && linux && pam

// Command qtd-pam opens sessions of PAM for qtd in place of su, with rules of their own: those for the
// service qtd. Its arguments are the account, the client's address, which may be empty, and the program to
// run with its arguments, which gets the account's rights, PAM's variables and descriptor 3. It ends as the
// program does, after it has closed the session. It is optional, and needs the PAM library:
//
//	go build -tags pam ./cmd/qtd-pam
package main

/*
#cgo LDFLAGS: -lpam
#include <grp.h>
#include <pwd.h>
#include <security/pam_appl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic pid_t child;
static atomic_int ending; // a signal has come
static struct rlimit files;

// Go raises the limit of open files before main.
__attribute__((constructor)) static void keep(void) { getrlimit(RLIMIT_NOFILE, &files); }

static void pass(int sig) {
	ending = 1; // before child is read: another thread may be setting that
	pid_t pid = child;
	if (pid > 0)
		kill(pid, sig);
}

// tell prints what PAM says. It can answer nothing.
static int tell(int n, const struct pam_message **m, struct pam_response **r, void *unused) {
	for (int i = 0; i < n; i++) {
		if (m[i]->msg_style != PAM_ERROR_MSG && m[i]->msg_style != PAM_TEXT_INFO)
			return PAM_CONV_ERR;
		fprintf(stderr, "%s\n", m[i]->msg);
	}
	*r = calloc(n, sizeof **r);
	return *r ? PAM_SUCCESS : PAM_BUF_ERR;
}

// run returns the status of the program as waitpid has it, or -1 if PAM has refused.
static int run(char *name, char *client, char **argv) {
	struct pam_conv conv = {tell, NULL};
	struct sigaction act = {.sa_handler = pass, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct passwd *pw = getpwnam(name);
	pam_handle_t *h = NULL;
	int status = -1, err;
	if (!pw) {
		fprintf(stderr, "no such account\n");
		return -1;
	}
	setrlimit(RLIMIT_NOFILE, &files);
	uid_t uid = pw->pw_uid;
	gid_t gid = pw->pw_gid;
	if ((err = pam_start("qtd", name, &conv, &h)) != PAM_SUCCESS) {
		fprintf(stderr, "PAM does not start\n");
		return -1;
	}
	// Modules know the name ssh as one for logins whose terminal is opened later.
	if ((err = pam_set_item(h, PAM_TTY, "ssh")) == PAM_SUCCESS && (err = pam_set_item(h, PAM_RUSER, name)) == PAM_SUCCESS &&
	    (!*client || (err = pam_set_item(h, PAM_RHOST, client)) == PAM_SUCCESS) &&
	    (err = pam_acct_mgmt(h, 0)) == PAM_SUCCESS && (err = initgroups(name, gid) ? PAM_SYSTEM_ERR : PAM_SUCCESS) == PAM_SUCCESS &&
	    (err = pam_setcred(h, PAM_ESTABLISH_CRED)) == PAM_SUCCESS) {
		if ((err = pam_open_session(h, 0)) == PAM_SUCCESS) {
			char **env = pam_getenvlist(h);
			sigset_t term, mask;
			sigemptyset(&term);
			sigaddset(&term, SIGTERM);
			// The new process must not take a signal by the handler that it has inherited.
			pthread_sigmask(SIG_BLOCK, &term, &mask);
			sigaction(SIGTERM, &act, NULL);
			child = fork();
			if (child == 0) {
				signal(SIGTERM, SIG_DFL);
				pthread_sigmask(SIG_SETMASK, &mask, NULL);
				if (env && !setgid(gid) && !setuid(uid) && (uid == 0 || setuid(0)))
					execve(argv[0], argv, env);
				_exit(126);
			}
			pthread_sigmask(SIG_SETMASK, &mask, NULL);
			if (child > 0) {
				if (ending)
					kill(child, SIGTERM);
				waitpid(child, &status, 0);
				child = 0; // its id may be that of another process now
			}
			err = pam_close_session(h, 0);
		}
		pam_setcred(h, PAM_DELETE_CRED);
	}
	if (err != PAM_SUCCESS)
		fprintf(stderr, "%s\n", pam_strerror(h, err));
	pam_end(h, err);
	return status;
}

// end ends this process as one with a status has ended.
static void end(int status) {
	if (status != -1 && WIFSIGNALED(status)) {
		struct rlimit none = {0, 0};
		setrlimit(RLIMIT_CORE, &none);
		signal(WTERMSIG(status), SIG_DFL);
		kill(getpid(), WTERMSIG(status));
		for (;;)
			pause();
	}
	_exit(status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

// What modules set holds for the first thread, from which the program starts.
func init() { runtime.LockOSThread() }

func main() {
	if len(os.Args) < 4 || os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "qtd-pam: it is for root's qtd only")
		os.Exit(1)
	}
	argv := (*[1 << 16]*C.char)(C.calloc(C.size_t(len(os.Args)), C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	for n, arg := range os.Args[3:] {
		argv[n] = C.CString(arg)
	}
	C.end(C.run(C.CString(os.Args[1]), C.CString(os.Args[2]), &argv[0]))
}
