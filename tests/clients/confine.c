/* SPDX-License-Identifier: BSD-2-Clause */
/* confine docker|old PROGRAM ...: runs a program under a filter of system calls.
 * docker: what Docker's default profile refuses with EPERM (docs.docker.com/engine/security/seccomp), io_uring
 * included, and what older versions of it do with process_vm_readv(), process_vm_writev() and ptrace(). old: that, and
 * what is too new for an old profile or kernel: ENOSYS. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int refused[] = {
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_ptrace,
	SYS_acct,
	SYS_add_key,
	SYS_bpf,
	SYS_clock_adjtime,
	SYS_clock_settime,
	SYS_delete_module,
	SYS_finit_module,
	SYS_get_mempolicy,
	SYS_init_module,
	SYS_kcmp,
	SYS_kexec_load,
	SYS_keyctl,
	SYS_lookup_dcookie,
	SYS_mbind,
	SYS_mount,
	SYS_move_pages,
	SYS_name_to_handle_at,
	SYS_open_by_handle_at,
	SYS_perf_event_open,
	SYS_pivot_root,
	SYS_quotactl,
	SYS_reboot,
	SYS_request_key,
	SYS_set_mempolicy,
	SYS_setns,
	SYS_settimeofday,
	SYS_swapon,
	SYS_swapoff,
	SYS_umount2,
	SYS_unshare,
	SYS_userfaultfd,
};
static const int unknown[] = {
	SYS_openat2, SYS_close_range, SYS_faccessat2, SYS_epoll_pwait2, SYS_pidfd_open, SYS_clone3, SYS_statx, SYS_rseq,
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static struct sock_filter code[2 * (COUNT(refused) + COUNT(unknown)) + 2];
static unsigned len;

static void add(const int *calls, size_t count, unsigned err)
{
	for (size_t i = 0; i < count; i++) {
		code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
		code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err);
	}
}

int main(int argc, char **argv)
{
	struct sock_fprog program = {.filter = code};

	if (argc < 3)
		return 2;
	code[len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	add(refused, COUNT(refused), EPERM);
	if (!strcmp(argv[1], "old"))
		add(unknown, COUNT(unknown), ENOSYS);
	code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)len;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		perror("confine: seccomp");
	else
		execvp(argv[2], argv + 2);
	return 1;
}
