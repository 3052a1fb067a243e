--- The attacks: what must be impossible from inside, each a text for `sh -c` with what its output must hold (`want`) and
--- must not (`never`), as Lua patterns. `oom`: a memory controller must have ended it; `unlimited`: why it is not held
--- where there is none. `users`: needs more than one user inside; `slow`:
--- left out when AGENTBOX_TEST_SHORT is set. @CANARY@, @SOCKET@ and @PORT@ are things of the host. Numbers are names; they are not contiguous.
return {
  -- Paths and escapes
  { n = 1, title = "symlink to a host file", want = "No such file", run = [==[
ln -s @CANARY@/host_canary /tmp/l; cat /tmp/l]==] },
  { n = 2, title = ".. above root", want = "No such file", never = "CANARY", run = [==[
cat /../../../../..@CANARY@/host_canary; cat /proc/self/root/../..@CANARY@/host_canary]==] },
  { n = 4, title = "/proc/*/cwd and fd magic links", want = "^done", never = "@CANARY@", run = [==[
for l in /proc/[0-9]*/cwd /proc/[0-9]*/fd/*; do readlink $l; done 2>/dev/null | grep -E "^/(srv/abx|sys/fs)" ; echo done]==] },
  { n = 5, title = "leaked fds (cwd/dirfd)", want = "^done\n$", never = "%->", run = [==[
ls -l /proc/self/fd | grep -vE "(pipe|socket|/dev/null|/proc/|/dev/pts|total|anon_inode)" | grep -- "->" ; echo done]==] },
  { n = 7, title = "open_by_handle_at (\"shocker\")", want = "Operation not permitted", never = "ALLOWED", run = [==[
python3 -c 'import ctypes,os,struct
l=ctypes.CDLL(None,use_errno=True)
h=struct.pack("IiQ",8,1,2)+b"\0"*120;b=ctypes.create_string_buffer(h);f=os.open("/etc/hostname",0)
r=l.open_by_handle_at(f,b,0);print("rc",r,os.strerror(ctypes.get_errno()) if r<0 else "ALLOWED")']==] },
  { n = 8, title = "hardlink + write to image file", want = "x", run = [==[
ln /etc/debian_version /tmp/h && echo pwned >> /tmp/h; echo x >> /etc/debian_version; cat /etc/debian_version | tail -1]==] },
  { n = 10, title = "overwrite runtime via /proc/self/exe of pid 1", want = "Permission denied", never = "agentbox", run = [==[
echo x > /proc/1/exe; readlink /proc/1/exe; echo done]==] },
  { n = 11, title = "mount tmpfs", want = "permission denied", run = [==[
mount -t tmpfs x /mnt]==] },
  { n = 13, title = "umount over-mounts (/dev, /proc masks)", want = "must be superuser", run = [==[
umount -l /dev; umount /proc]==] },
  { n = 14, title = "fsopen/fsconfig heap overflow path", want = "Operation not permitted", never = "ALLOWED", run = [==[
sc 430 0 0]==] },
  { n = 16, title = "pivot_root", want = "Operation not permitted", never = "ALLOWED", run = [==[
sc 155 0 0]==] },
  { n = 17, title = "setns into pid 1 / host namespaces", want = "[Pp]ermi", never = "ENTERED", run = [==[
nsenter -t 1 -m -u -i -n -p true && echo ENTERED]==] },
  { n = 19, title = "clone3(CLONE_NEWUSER) bypassing arg filter", want = "Function not implemented", never = "ALLOWED", run = [==[
sc 435 0 0]==] },
  { n = 20, title = "io of /proc/self/mountinfo leaks host paths", want = "done", never = "@CANARY@", run = [==[
cat /proc/self/mountinfo | grep -oE "(lowerdir|upperdir)[^ ]*|@CANARY@[^ ]*" ; echo done]==] },
  -- Kernel interfaces and privileges
  { n = 22, title = "dangerous nodes in /dev", want = "^done\n$", run = [==[
ls /dev | grep -E "^(mem|kmem|port|kmsg|vda|sda|kvm|fuse|loop|loop-control|net|vsock|userfaultfd|hwrng|mapper|nvme.*|cpu|vhost.*|uinput)$"; echo done]==] },
  { n = 23, title = "/proc/sys write (core_pattern)", want = "Permission denied", run = [==[
echo "|/tmp/x" > /proc/sys/kernel/core_pattern]==] },
  { n = 25, title = "sysrq-trigger", want = "cannot create", run = [==[
echo h > /proc/sysrq-trigger]==] },
  { n = 26, title = "/proc/kcore", want = "done", run = [==[
head -c 16 /proc/kcore | od -c | head -1; echo done]==] },
  { n = 28, title = "dmesg (syslog)", want = "Operation not permitted", never = "ALLOWED", run = [==[
dmesg | tail -1; sc 103 3 0 0]==] },
  { n = 29, title = "/sys writable or uevent_helper", want = "nonexistent", never = "^/sys", run = [==[
ls -d /sys/kernel/uevent_helper /sys/fs/cgroup 2>/dev/null; echo /tmp/x > /sys/kernel/uevent_helper]==] },
  { n = 31, title = "write own cgroup limits", want = "nonexistent", run = [==[
for f in /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max; do echo -1 > $f; done]==] },
  { n = 32, title = "keyctl / add_key / request_key", want = "not permitted.*not permitted.*not permitted", never = "ALLOWED", run = [==[
sc 250 0 -3 0; sc 248 0 0 0 0 -3; sc 249 0 0 0 0]==] },
  { n = 34, title = "perf_event_open", want = "Operation not permitted", never = "ALLOWED", run = [==[
sc 298 0 0 -1 -1 0]==] },
  { n = 35, title = "userfaultfd", want = "Operation not permitted", never = "ALLOWED", run = [==[
sc 323 0]==] },
  { n = 37, title = "init_module/finit/delete/kexec", want = "Operation not permitted", never = "ALLOWED", run = [==[
sc 175 0 0 0; sc 313 -1 0 0; sc 176 0 0; sc 246 0 0 0 0; sc 320 -1 -1 0 0 0]==] },
  { n = 38, title = "reboot/swapon/acct/quotactl", want = "Operation not permitted", never = "ALLOWED", run = [==[
sc 169 0xfee1dead 672274793 0 0; sc 167 0 0; sc 163 0; sc 179 0 0 0 0]==] },
  { n = 40, title = "clock_settime / adjtimex", want = "Operation not permitted", never = "SET", run = [==[
python3 -c 'import time
try: time.clock_settime(time.CLOCK_REALTIME,time.time());print("SET")
except Exception as e: print(e)']==] },
  { n = 41, title = "hostname change", want = "^sandbox", run = [==[
hostname pwned; hostname]==] },
  { n = 43, title = "process_vm_writev to pid 1", want = "Operation not permitted", never = "ALLOWED", run = [==[
sc 311 1 0 0 0 0 0; sc 310 1 0 1 0 1 0]==] },
  { n = 44, title = "/proc/1/{environ,mem,maps,fd,stack}", want = "^done\n$", never = "READ", run = [==[
for f in environ mem maps stack; do head -c 64 /proc/1/$f >/dev/null 2>&1 && echo READ:$f; done; ls /proc/1/fd >/dev/null 2>&1 && echo READ:fd; echo done]==] },
  { n = 46, title = "capability set", want = "CapEff:\t00000000800405fb", run = [==[
grep CapEff /proc/self/status]==] },
  { n = 47, title = "real-time priority / nice -20", never = "RT\n", run = [==[
chrt -f 99 true && echo RT; nice -n -20 sh -c "nice"]==] },
  { n = 49, title = "personality(ADDR_NO_RANDOMIZE)", run = [==[
sc 135 0x0040000]==] },
  { n = 50, title = "SysV IPC / POSIX mq isolation", want = "^done\n$", run = [==[
ipcs -m | grep 0x0abcd123; ls /dev/mqueue /dev/shm 2>/dev/null | grep hostshm; echo done]==] },
  { n = 52, title = "int 0x80 (ia32) bypass of filter", want = "st=159", run = [==[
printf '\x7fELF' >/dev/null; python3 -c 'import mmap,ctypes
m=mmap.mmap(-1,4096,prot=7);m.write(bytes.fromhex("53b815000000bb00000000b900000000ba00000000cd805bc3"));a=ctypes.addressof(ctypes.c_char.from_buffer(m));f=ctypes.CFUNCTYPE(ctypes.c_int)(a);print("mount32",f())' ; echo st=$?]==] },
  { n = 97, title = "setuid-root binary run by uid 65534", users = true, want = "65534", never = "^0", run = [==[
cp /usr/bin/id /tmp/sid; chown 0 /tmp/sid; chmod 4755 /tmp/sid; su -s /bin/sh nobody -c "/tmp/sid -u"; rm -f /tmp/sid]==] },
  { n = 98, title = "file capability grant", want = "rc=0", run = [==[
cp /bin/true /tmp/fc; python3 -c "import os,struct;os.setxattr(chr(47)+'tmp/fc','security.capability',struct.pack('<5I',0x02000001,1<<21,0,0,0))" 2>&1 | tail -1; /tmp/fc; echo rc=$?; echo done]==] },
  { n = 100, title = "kcmp / process_madvise / move_pages of pid 1", want = "Operation not permitted", never = "ALLOWED", run = [==[
sc 312 1 1 0 0 0; sc 440 -1 0 0 0 0; sc 279 1 0 0 0 0 0]==] },
  { n = 101, title = "mlock / hugetlb hoard", want = "mlock64M %-1", run = [==[
python3 -c 'import mmap,ctypes
l=ctypes.CDLL(None,use_errno=True)
m=mmap.mmap(-1,64<<20)
b=(ctypes.c_char*(64<<20)).from_buffer(m)
print("mlock64M",l.mlock(ctypes.addressof(b),64<<20),ctypes.get_errno())']==] },
  -- Network
  { n = 53, title = "host loopback TCP", want = "refused", never = "CONNECTED", run = [==[
python3 -c 'import socket
try: socket.create_connection(("127.0.0.1",@PORT@),2);print("CONNECTED")
except Exception as e: print(e)']==] },
  { n = 55, title = "abstract unix socket of host", want = "refused", never = "CONNECTED", run = [==[
python3 -c 'import socket
s=socket.socket(socket.AF_UNIX)
try: s.connect("\0@SOCKET@");print("CONNECTED")
except Exception as e: print(e)']==] },
  { n = 56, title = "docker.sock / host unix sockets", want = "done", never = "^/run", run = [==[
ls /var/run/docker.sock /run/containerd/containerd.sock 2>&1; find / -xdev -type s 2>/dev/null | head; echo done]==] },
  { n = 58, title = "AF_VSOCK to the hypervisor", want = "not supported", never = "ALLOWED", run = [==[
python3 -c 'import socket
try: socket.socket(40,1,0);print("ALLOWED vsock")
except Exception as e: print(e)']==] },
  { n = 59, title = "AF_ALG / exotic families", want = "^done\n$", never = "ALLOWED", run = [==[
python3 -c 'import socket
for f in (38,9,15,29,30,31,44):
  try: socket.socket(f,2 if f!=38 else 5,0);print("ALLOWED",f)
  except Exception as e: pass
print("done")']==] },
  { n = 61, title = "nf_tables via netlink", want = "not supported", never = "ALLOWED", run = [==[
python3 -c 'import socket,struct
s=socket.socket(16,3,12);s.settimeout(2)
b=struct.pack("BBH",0,0,10);n=b"t\0\0\0";at=struct.pack("HH",6,1)+n
def m(t,f,q,p): return struct.pack("IHHII",16+len(p),t,f,q,0)+p
s.send(m(16,1,0,b)+m((10<<8)|0,1|4|0x400,1,struct.pack("BBH",2,0,0)+at)+m(17,1,2,b))
d=s.recv(4096);print("errno",struct.unpack("i",d[16:20])[0] if struct.unpack("H",d[4:6])[0]==2 else "ALLOWED")']==] },
  { n = 62, title = "own loopback works (must function)", want = "LOOPOK", run = [==[
python3 -c 'import socket
s=socket.socket();s.bind(("127.0.0.1",0));s.listen();c=socket.create_connection(s.getsockname(),2);print("LOOPOK")']==] },
  -- Information
  { n = 64, title = "host hostname", want = "^sandbox\nsandbox\n$", run = [==[
hostname; cat /etc/hostname]==] },
  { n = 65, title = "host processes visible", want = "^%d\ndone", never = "dockerd", run = [==[
ls /proc | grep -cE "^[0-9]+$"; ps ax 2>/dev/null | grep -E "dockerd|containerd" | grep -v grep; echo done]==] },
  { n = 67, title = "/proc/self/cgroup path", want = ":/\n", never = "agentbox", run = [==[
cat /proc/self/cgroup | head -3]==] },
  -- Resources
  { n = 68, title = "fork bomb", want = "stopped at 2%d%d ", run = [==[
python3 -c 'import os,time
n=0
try:
  while 1:
    if os.fork()==0: time.sleep(60)
    n+=1
except OSError as e: print("stopped at",n,e)']==] },
  { n = 70, title = "anonymous memory bomb", never = "ALLOCATED", oom = true, run = [==[
python3 -c 'b=[]
for i in range(2048): b.append(bytearray(1<<20))
print("ALLOCATED 2G")']==] },
  { n = 71, title = "/dev/shm + /tmp tmpfs bomb", want = "64 MiB.*256 MiB", never = "GB, ", run = [==[
dd if=/dev/zero of=/dev/shm/x bs=1M count=2000 2>&1 | tail -1; dd if=/dev/zero of=/tmp/x bs=1M count=2000 2>&1 | tail -1; du -sm /dev/shm /tmp | head]==] },
  { n = 73, slow = true, title = "inode fill", want = "stopped 65%d+ .*No space", never = "CREATED", run = [==[
python3 -c 'import os
os.mkdir("/ino")
n=0
try:
  for n in range(300000): open("/ino/%d"%n,"w").close()
  print("CREATED 300k")
except OSError as e: print("stopped",n,e)']==] },
  { n = 74, slow = true, title = "output flood", want = "^y\ny\n", truncated = true, run = [==[
yes | head -c 300000000]==] },
  { n = 76, title = "kernel memory: pipes", want = "stopped", never = "^$", run = [==[
python3 -c 'import os,fcntl
n=0
try:
  while n<5000:
    r,w=os.pipe();fcntl.fcntl(w,1031,1<<20);n+=1
except OSError as e: print("stopped",n,e)']==] },
  { n = 77, slow = true, title = "CPU hog", want = "rc=124", run = [==[
timeout 2 sh -c "while :; do :; done"; echo rc=$?]==] },
  { n = 103, title = "memfd bomb", never = "MEMFD_MB", oom = true, unlimited = "memory that belongs to no process is bounded by a cgroup only", run = [==[
python3 -c 'import os
f=[]
for i in range(40):
  d=os.memfd_create("x");os.ftruncate(d,64<<20)
  os.write(d,b"x"*(64<<20));f.append(d)
print("MEMFD_MB",len(f)*64)']==] },
  { n = 104, title = "unlinked open file keeps disk", want = "stopped 25%d", never = "HELD", run = [==[
python3 -c 'import os
f=[];b=b"x"*(8<<20);n=0
try:
  for i in range(400):
    d=os.open("/u%d"%i,os.O_CREAT|os.O_RDWR);os.unlink("/u%d"%i);n+=os.write(d,b)>>20;f.append(d)
  print("HELD_MB",n)
except OSError as e: print("stopped",n,e)']==] },
  { n = 106, title = "inotify / epoll hoard", want = "inotify 64", run = [==[
python3 -c 'import ctypes
l=ctypes.CDLL(None,use_errno=True);n=0
while n<20000:
  if l.inotify_init()<0: break
  n+=1
print("inotify",n)']==] },
  { n = 107, title = "POSIX timers / signals hoard", want = "timers 4096", run = [==[
python3 -c 'import ctypes
l=ctypes.CDLL(None,use_errno=True);n=0;t=ctypes.c_void_p()
sev=(ctypes.c_int*16)(0,0,0,1)
while n<300000:
  if l.timer_create(1,sev,ctypes.byref(t)): break
  n+=1
print("timers",n)']==] },
  { n = 109, slow = true, title = "copy-up amplification", want = "ENOSPC", run = [==[
F=$(find /usr -xdev -type f -size +2M | head -200); n=0; for f in $F; do chmod u+x "$f" 2>/dev/null || { echo ENOSPC; break; }; n=$((n+1)); done; echo copied $n; df -m / | tail -1]==] },
  { n = 110, slow = true, title = "256 busy processes", want = "ok", run = [==[
python3 -c 'import os,time
for i in range(200):
  if os.fork()==0:
    t=time.time()
    while time.time()-t<2: pass
    os._exit(0)
time.sleep(2.5);print("ok")']==] },
  -- Processes
  { n = 79, title = "SIGSTOPs itself", never = "resumed", timed_out = true, timeout_s = 1, run = [==[
kill -STOP $$; echo resumed]==] },
  { n = 80, title = "daemon outlives exec (setsid, double fork)", want = "^hi\n$", run = [==[
(setsid sleep 300 >/dev/null 2>&1 &) ; echo hi]==] },
  { n = 82, title = "kill -9 -1", run = [==[
kill -9 -1; echo alive]==] },
  { n = 83, title = "(after) sandbox still works", want = "^still", run = [==[
echo still]==] },
  { n = 85, title = "zombie flood", want = "^0\n$", run = [==[
python3 -c 'import os,time
for i in range(150):
  if os.fork()==0:
    if os.fork()==0: os._exit(0)
    os._exit(0)
  os.wait()
def zombies():
  n=0
  for p in os.listdir("/proc"):
    try: f=open("/proc/%s/stat"%p).read().rsplit(")",1)[1].split() if p.isdigit() else None
    except OSError: continue
    if f and f[0]=="Z" and f[1]=="1": n+=1
  return n
t=time.time()
while zombies() and time.time()-t<20: time.sleep(0.05)
print(zombies())']==] },
  { n = 86, title = "core dump", want = "done\n", never = "\ncore", run = [==[
ulimit -c unlimited 2>&1; cd /tmp; sh -c "kill -SEGV \$\$"; ls /tmp | grep core; echo done]==] },
  { n = 88, slow = true, title = "delete all binaries", fresh = true, run = [==[
rm -rf /usr /bin /lib /lib64 2>/dev/null; echo gone]==] },
  { n = 89, title = "(after) new exec", run = [==[
echo hi]==] },
  { n = 112, title = "child makes stdout non-blocking / closes it / execs over it", want = "^ok", run = [==[
python3 -c 'import os,fcntl
fcntl.fcntl(1,fcntl.F_SETFL,os.O_NONBLOCK);os.write(1,b"ok\n");os.close(1);os.close(2)']==] },
  { n = 113, title = "reads stdin when none given", want = "rc=0", run = [==[
timeout 2 cat; echo rc=$?]==] },
  { n = 115, title = "4 MB argument / environment", want = "Argument list too long", run = [==[
python3 -c 'import os;os.execve("/bin/true",["true"],{"A":"x"*4000000})' 2>&1 | tail -1]==] },
  -- Hostile files
  { n = 91, title = "directory tree deeper than PATH_MAX", want = "depth 3000", run = [==[
python3 -c 'import os
n=0
for i in range(3000):
  os.mkdir("d"*20);os.chdir("d"*20);n+=1
print("depth",n)']==] },
  { n = 92, title = "names with newline / invalid UTF-8 / 255 bytes", want = "^5\n", run = [==[
cd /tmp && python3 -c 'import os
for n in (b"a\nb",b"\xff\xfe",b"x"*255,b"-rf",b"\x1b[31m"): open(b"/tmp/"+n,"w").close()
print(len(os.listdir(b"/tmp")))']==] },
  { n = 94, title = "symlink loop", want = "Too many levels", run = [==[
ln -s /tmp/l2 /tmp/l1; ln -s /tmp/l1 /tmp/l2; cat /tmp/l1]==] },
  { n = 95, title = "cwd deleted", want = "done", run = [==[
mkdir /tmp/z; cd /tmp/z; rmdir /tmp/z; pwd; ls; echo done]==] },
  { n = 116, title = "hostile file names in list_dir", want = "^5\n", run = [==[
cd /tmp; mkdir -p h; cd h; touch -- '-rf' '$(id)' '`id`' 'a;b' '..x' ' ' ; ls | wc -l]==] },
}
