//! This process's user, and access lists.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::ptr::{from_mut, null_mut};

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, GENERIC_ALL, HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::{GetSecurityInfo, SE_KERNEL_OBJECT};
use windows_sys::Win32::Security::{
    ACL, ACL_REVISION, AddAccessAllowedAce, EqualSid, GetTokenInformation, InitializeAcl,
    InitializeSecurityDescriptor, OWNER_SECURITY_INFORMATION, PSID, SECURITY_ATTRIBUTES, SECURITY_DESCRIPTOR,
    SetSecurityDescriptorDacl, SetSecurityDescriptorOwner, TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::System::SystemServices::SECURITY_DESCRIPTOR_REVISION;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::{owned, succeeded};

/// This process's user: a `TOKEN_USER`, whose identifier lies in the same memory.
struct User(Box<[u64; WORDS]>);

impl User {
    fn own() -> io::Result<Self> {
        let mut token: HANDLE = null_mut();
        // SAFETY: `token` is valid.
        succeeded(unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) })?;
        let token = owned(token)?;
        let mut user = Self(Box::new([0; WORDS]));
        let (place, bytes) = (user.0.as_mut_ptr().cast(), size_of_val(&*user.0) as u32);
        // SAFETY: the place has this length.
        succeeded(unsafe { GetTokenInformation(token.as_raw_handle(), TokenUser, place, bytes, &mut 0) })?;
        Ok(user)
    }

    fn id(&self) -> PSID {
        // SAFETY: `own` has filled it in with a `TOKEN_USER`; the words are aligned for it.
        unsafe { (*self.0.as_ptr().cast::<TOKEN_USER>()).User.Sid }
    }
}

/// Whether this process's user owns a pipe, as only the user who made it can.
pub(super) fn is_own(pipe: &OwnedHandle) -> io::Result<bool> {
    let user = User::own()?;
    let (mut owner, mut descriptor): (PSID, *mut c_void) = (null_mut(), null_mut());
    // SAFETY: the handle is open, and the places are valid. The call makes `descriptor`, and `owner` points into it.
    unsafe {
        let result = GetSecurityInfo(
            pipe.as_raw_handle(),
            SE_KERNEL_OBJECT,
            OWNER_SECURITY_INFORMATION,
            &mut owner,
            null_mut(),
            null_mut(),
            null_mut(),
            &mut descriptor,
        );
        if result != ERROR_SUCCESS {
            return Err(io::Error::from_raw_os_error(result as i32));
        }
        let is_own = !owner.is_null() && EqualSid(owner, user.id()) != 0;
        LocalFree(descriptor);
        Ok(is_own)
    }
}

/// Access list of a new object. Its parts point to each other, so they stay where they are.
pub(super) struct Access {
    descriptor: Box<SECURITY_DESCRIPTOR>,
    #[allow(dead_code, reason = "the descriptor points to it")]
    list: Box<[u32; WORDS]>,
    #[allow(dead_code, reason = "the descriptor points to it")]
    user: User,
}

impl Access {
    /// Nobody may open the object.
    pub(super) fn nobody() -> io::Result<Self> {
        Self::new(false)
    }

    /// Only this process's user may open the object.
    pub(super) fn own_user() -> io::Result<Self> {
        Self::new(true)
    }

    fn new(admits_user: bool) -> io::Result<Self> {
        let user = User::own()?;
        let mut list = Box::new([0_u32; WORDS]);
        let mut descriptor = Box::<SECURITY_DESCRIPTOR>::default();
        let (acl, bytes) = (list.as_mut_ptr().cast::<ACL>(), size_of_val(&*list) as u32);
        let place = from_mut(&mut *descriptor).cast();
        // SAFETY: `acl` and `place` are valid for the whole of `list` and `descriptor`, both aligned. The boxes keep
        // what the descriptor points to.
        unsafe {
            succeeded(InitializeAcl(acl, bytes, ACL_REVISION))?;
            if admits_user {
                succeeded(AddAccessAllowedAce(acl, ACL_REVISION, GENERIC_ALL, user.id()))?;
            }
            succeeded(InitializeSecurityDescriptor(place, SECURITY_DESCRIPTOR_REVISION))?;
            succeeded(SetSecurityDescriptorOwner(place, user.id(), 0))?;
            succeeded(SetSecurityDescriptorDacl(place, 1, acl, 0))?;
        }
        Ok(Self { descriptor, list, user })
    }

    /// For the call that makes the object; valid as long as `self`.
    pub(super) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: std::ptr::from_ref(&*self.descriptor).cast_mut().cast(),
            bInheritHandle: 0,
        }
    }
}

// SAFETY: the pointers in the descriptor lead into boxes of the same value, which nothing changes.
unsafe impl Send for Access {}

/// An identifier has at most 68 bytes.
const WORDS: usize = 32;
